#include "client/cli/documents.h"

#include <cmath>
#include <iostream>

#include "absl/strings/escaping.h"
#include "proto/device_build.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

Json Interval(double low, double high) {
  if (low <= 0 || high <= 0) return nullptr;
  return Json::array({low, high});
}

Json TaskDocument(const v1::TaskStatus& task) {
  Json outcomes = Json::object();
  for (int i = v1::OUTCOME_OK; i <= v1::OUTCOME_CANCELLED; ++i) {
    const std::string name = OutcomeName(static_cast<v1::Outcome>(i));
    const auto it = task.outcomes().find(name);
    outcomes[name] = it == task.outcomes().end() ? 0 : it->second;
  }
  const double seconds = task.best_ns() * 1e-9;
  Json times = {{"build_ns", PositiveOrNull(task.times().build_ns())},
                {"wait_ns", PositiveOrNull(task.times().wait_ns())},
                {"verify_ns", PositiveOrNull(task.times().verify_ns())},
                {"time_ns", PositiveOrNull(task.times().time_ns())},
                {"record_ns", PositiveOrNull(task.times().record_ns())}};
  return {
      {"workload", task.workload()},
      {"workload_key", task.workload_key()},
      {"device_class", task.device_class()},
      {"threads", task.policy().threads()},
      {"cache", CacheStateName(task.policy().cache())},
      {"state", JobStateName(task.state())},
      {"reason", TextOrNull(task.reason())},
      {"phase", TextOrNull(task.phase())},
      {"weight", task.weight()},
      {"budget_trials", PositiveOrNull(task.budget_trials())},
      {"budget_minutes", PositiveOrNull(task.budget_minutes())},
      {"until_gain_percent", PositiveOrNull(task.until_gain_percent())},
      {"ended_by", TextOrNull(task.ended_by())},
      {"device_ns", task.device_ns()},
      {"trials", task.trials()},
      {"outcomes", outcomes},
      {"reused", task.reused()},
      {"default_ns", PositiveOrNull(task.default_ns())},
      {"best_ns", PositiveOrNull(task.best_ns())},
      {"confirmed", task.confirmed()},
      {"speedup", PositiveOrNull(task.speedup())},
      {"speedup_interval", Interval(task.speedup_low(), task.speedup_high())},
      {"gflops", seconds > 0 ? PositiveOrNull(task.flops() / seconds / 1e9)
                             : Json(nullptr)},
      {"gbps", seconds > 0 ? PositiveOrNull(task.bytes() / seconds / 1e9)
                           : Json(nullptr)},
      {"peak_gflops", PositiveOrNull(task.peak_flops_per_s() / 1e9)},
      {"peak_gbps", PositiveOrNull(task.bandwidth_bytes_per_s() / 1e9)},
      {"schedule", TextOrNull(task.schedule())},
      {"trials_per_s", PositiveOrNull(task.trials_per_s())},
      {"remaining_ms",
       task.remaining_ms() < 0 ? Json(nullptr) : Json(task.remaining_ms())},
      {"trial_times_median", times},
  };
}

}  // namespace

Json PositiveOrNull(int64_t value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

Json PositiveOrNull(double value) {
  return std::isfinite(value) && value > 0 ? Json(value) : Json(nullptr);
}

Json TextOrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json StandingDocument(const v1::DeviceStanding& standing) {
  const auto axis = [](const std::string& state, const v1::Standing& s) {
    return Json{{"state", state},
                {"reason", TextOrNull(s.reason())},
                {"by", TextOrNull(s.by())},
                {"since_unix_ms", PositiveOrNull(s.since_unix_ms())},
                {"until_unix_ms", PositiveOrNull(s.until_unix_ms())}};
  };
  Json labels = Json::object();
  for (const auto& [name, value] : standing.labels()) labels[name] = value;
  const bool draining =
      standing.operator_state() == v1::OPERATOR_STATE_DRAINING;
  return {
      {"trust", axis(TrustName(standing.trust()), standing.trust_standing())},
      {"operator", axis(OperatorStateName(standing.operator_state()),
                        standing.operator_standing())},
      {"next_operator_state",
       draining ? Json(OperatorStateName(standing.next())) : Json(nullptr)},
      {"labels", labels},
  };
}

Json DeviceDocument(const v1::DeviceStatus& device) {
  const v1::DeviceInfo& info = device.info();
  Json document = {
      {"id", info.device_id()},
      {"device_class", TextOrNull(info.device_class())},
      {"kind", KindOf(info)},
      {"target", info.target()},
      {"state", device.state()},
      {"state_since_ms", device.state_since_ms()},
      {"last_seen_ms", device.last_seen_ms()},
      {"health", TextOrNull(info.health())},
      {"uncontrolled", TextOrNull(info.uncontrolled())},
      {"sessions_closed", info.sessions_closed()},
      {"throttled_blocks", info.throttled_blocks()},
      {"noise_floor",
       info.has_noise_floor() ? Json(info.noise_floor()) : Json(nullptr)},
      {"simulated", info.simulated()},
      {"cores", info.cores()},
      {"cpu_list", TextOrNull(info.cpu_list())},
      {"memory_bytes", PositiveOrNull(info.memory_bytes())},
      {"l1_bytes", PositiveOrNull(info.l1_bytes())},
      {"l2_bytes", PositiveOrNull(info.l2_bytes())},
      {"l3_bytes", PositiveOrNull(info.l3_bytes())},
      {"peak_gflops", PositiveOrNull(info.peak_flops_per_s() / 1e9)},
      {"peak_gbps", PositiveOrNull(info.bandwidth_bytes_per_s() / 1e9)},
      {"marketing_name", TextOrNull(info.marketing_name())},
      {"driver_version", TextOrNull(info.driver_version())},
      {"agent", device.agent_id()},
      {"agent_version", TextOrNull(device.agent_version())},
      {"compiler_version", TextOrNull(device.compiler_version())},
      {"sandbox", TextOrNull(device.sandbox())},
      {"measure_only", device.measure_only()},
      {"builder", TextOrNull(device.builder())},
      {"running", device.running()},
      {"running_workload", TextOrNull(device.running_what())},
      {"presence", PresenceName(device.presence())},
      {"obstacle", TextOrNull(device.obstacle())},
  };
  document.update(StandingDocument(device.standing()));
  return document;
}

Json EventDocument(const v1::DeviceEvent& event) {
  return {{"unix_ms", event.unix_ms()},
          {"device", TextOrNull(event.device_id())},
          {"device_class", TextOrNull(event.device_class())},
          {"what", event.what()},
          {"reason", TextOrNull(event.reason())},
          {"by", event.by()}};
}

Json BuilderDocument(const v1::BuilderStatus& builder) {
  Json reach = Json::array();
  for (const v1::KindReach& kind : builder.reach().kinds()) {
    reach.push_back({
        {"kind", kind.kind()},
        {"compiler_version", kind.compiler_version()},
        {"space_version", kind.space_version()},
        {"architectures", std::vector<std::string>(kind.architectures().begin(),
                                                   kind.architectures().end())},
    });
  }
  return {
      {"agent", builder.agent_id()},
      {"key", absl::BytesToHexString(builder.public_key())},
      {"slots", builder.slots()},
      {"building", builder.building()},
      {"answered", builder.answered()},
      {"reach", reach},
  };
}

Json JobDocument(const v1::Job& job) {
  Json tasks = Json::array();
  for (const v1::TaskStatus& task : job.tasks()) {
    tasks.push_back(TaskDocument(task));
  }
  return {
      {"job", job.job_id()},
      {"state", JobStateName(job.state())},
      {"reason", TextOrNull(job.reason())},
      {"name", TextOrNull(job.name())},
      {"priority", job.priority()},
      {"user", TextOrNull(job.user())},
      {"deadline_unix_ms", PositiveOrNull(job.deadline_unix_ms())},
      {"weight", job.weight()},
      {"strategy", job.strategy()},
      {"seed", job.seed()},
      {"fresh", job.fresh()},
      {"submitted_unix_ms", PositiveOrNull(job.submitted_unix_ms())},
      {"ended_unix_ms", PositiveOrNull(job.ended_unix_ms())},
      {"tasks", tasks},
  };
}

Json BestDocument(const v1::BestAnswer& answer) {
  return {
      {"grade", answer.grade()},
      {"workload", answer.workload()},
      {"workload_key", answer.workload_key()},
      {"device_class", TextOrNull(answer.device_class())},
      {"target", TextOrNull(answer.target())},
      {"threads", answer.policy().threads()},
      {"cache", CacheStateName(answer.policy().cache())},
      {"schedule", TextOrNull(answer.schedule().text())},
      {"time_ns", PositiveOrNull(answer.time_ns())},
      {"interval_ns", answer.low_ns() > 0 && answer.high_ns() > 0
                          ? Json::array({answer.low_ns(), answer.high_ns()})
                          : Json(nullptr)},
      {"samples", answer.samples()},
      {"boards", answer.boards()},
      {"default_ns", PositiveOrNull(answer.default_ns())},
      {"age_s", answer.age_s() < 0 ? Json(nullptr) : Json(answer.age_s())},
      {"compiler_version", TextOrNull(answer.compiler_version())},
      {"binary_hash", TextOrNull(answer.binary_hash())},
      {"differing_field", TextOrNull(answer.differing_field())},
      {"reason", answer.reason()},
  };
}

Json RecordDocument(const v1::Record& record) {
  const v1::TrialResult& result = record.result();
  const v1::TrialSpec& spec = result.spec();
  Json blocks = Json::array();
  int throttled = 0;
  for (const v1::Block& block : result.blocks()) {
    throttled += block.throttled() ? 1 : 0;
    blocks.push_back({{"calls", block.calls()},
                      {"elapsed_ns", block.elapsed_ns()},
                      {"throttled", block.throttled()}});
  }
  return {
      {"trial", spec.trial_id()},
      {"job", spec.job_id()},
      {"kind", TrialKindName(spec.kind())},
      {"schedule", spec.schedule().text()},
      {"outcome", OutcomeName(result.outcome())},
      {"detail", TextOrNull(result.detail())},
      {"abandoned", result.abandoned()},
      {"time_ns", PositiveOrNull(result.time_ns())},
      {"blocks", blocks},
      {"throttled_blocks", throttled},
      {"session", TextOrNull(result.environment().session())},
      {"session_reference_ns",
       PositiveOrNull(result.environment().session_reference_ns())},
      {"governor", TextOrNull(result.environment().governor())},
      {"uncontrolled", TextOrNull(result.environment().uncontrolled())},
      {"device", TextOrNull(result.device_id())},
      {"device_class", spec.device_class()},
      {"threads", spec.policy().threads()},
      {"cache", CacheStateName(spec.policy().cache())},
      {"attempt", result.attempt()},
      {"boot_id", TextOrNull(result.boot_id())},
      {"cpu_list", TextOrNull(result.timed_cpu_list())},
      {"timed_start_boot_ns", PositiveOrNull(result.timed_start_boot_ns())},
      {"timed_end_boot_ns", PositiveOrNull(result.timed_end_boot_ns())},
      {"build_ns", PositiveOrNull(result.phases().build_ns())},
      {"wait_ns", PositiveOrNull(result.phases().wait_ns())},
      {"verify_ns", PositiveOrNull(result.phases().verify_ns())},
      {"timing_ns", PositiveOrNull(result.phases().time_ns())},
      {"binary_hash", TextOrNull(result.binary_hash())},
      {"compiler_version", TextOrNull(result.environment().compiler_version())},
      {"builder", TextOrNull(result.environment().builder())},
      {"recorded_unix_ms", record.recorded_unix_ms()},
  };
}

void PrintJson(const Json& document) {
  // Text from elsewhere may hold bytes that are no UTF-8: replaced, not thrown.
  std::cout << document.dump(2, ' ', false, Json::error_handler_t::replace)
            << std::endl;
}

}  // namespace regatta::cli
