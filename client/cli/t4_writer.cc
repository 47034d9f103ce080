#include "client/cli/t4_writer.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "compiler/space/schedule_text.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNsPerMs = 1e6;

// T4's word for what a schedule did, and the text that Kernel Tuner puts in the
// place of its time.
struct Verdict {
  const char* invalidity;
  const char* in_place_of_time;  // null: the time itself
};

std::optional<Verdict> VerdictOf(v1::Outcome outcome) {
  switch (outcome) {
    case v1::OUTCOME_OK:
      return Verdict{"correct", nullptr};
    case v1::OUTCOME_COMPILE_ERROR:
      return Verdict{"compile", "CompilationFailedConfig"};
    case v1::OUTCOME_TIMED_OUT:
      return Verdict{"timeout", "RuntimeFailedConfig"};
    case v1::OUTCOME_WRONG_RESULT:
    case v1::OUTCOME_IMPLAUSIBLE:
      return Verdict{"correctness", "RuntimeFailedConfig"};
    case v1::OUTCOME_CRASHED:
    case v1::OUTCOME_OUT_OF_MEMORY:
    case v1::OUTCOME_SANDBOX_VIOLATION:
      return Verdict{"runtime", "RuntimeFailedConfig"};
    case v1::OUTCOME_REFUSED:
      return Verdict{"constraints", "InvalidConfig"};
    default:
      return std::nullopt;
  }
}

Json KnobValue(const std::string& text) {
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number)) return number;
  return text;
}

// {"sketch":"pack+tile","tile.mi":8}; parts that occur twice are told apart by
// their place. A text of another form stands whole.
void AddKnobs(const std::string& schedule, Json* configuration) {
  const auto parts = ParseScheduleText(schedule);
  if (!parts.ok()) {
    (*configuration)["schedule"] = schedule;
    return;
  }
  std::string sketch;
  std::map<std::string, int> seen;
  for (const PartText& part : *parts) {
    absl::StrAppend(&sketch, sketch.empty() ? "" : "+", part.label);
    const int nth = ++seen[part.label];
    const std::string name =
        nth == 1 ? part.label : absl::StrCat(part.label, "#", nth);
    for (const auto& [knob, value] : part.knobs) {
      (*configuration)[absl::StrCat(name, ".", knob)] = KnobValue(value);
    }
  }
  (*configuration)["sketch"] = sketch;
}

Json Configuration(const v1::TrialResult& result) {
  const v1::TrialSpec& spec = result.spec();
  Json configuration = {
      {"workload", spec.workload()},
      {"device_class", result.device_class().empty() ? spec.device_class()
                                                     : result.device_class()},
      {"threads", spec.policy().threads()},
      {"cache", CacheStateName(spec.policy().cache())}};
  AddKnobs(spec.schedule().text(), &configuration);
  return configuration;
}

Json Times(const v1::TrialResult& result) {
  Json runtimes = Json::array();
  for (const v1::Block& block : result.blocks()) {
    if (block.throttled() || block.calls() < 1) continue;
    runtimes.push_back(static_cast<double>(block.elapsed_ns()) /
                       static_cast<double>(block.calls()) / kNsPerMs);
  }
  const v1::PhaseTimes& phases = result.phases();
  const double compilation = phases.build_ns() / kNsPerMs;
  return {{"compilation_time", compilation},
          {"compilation", compilation},
          {"benchmark", phases.time_ns() / kNsPerMs},
          {"framework", phases.wait_ns() / kNsPerMs},
          // The search proposes while boards measure: a trial waits for none.
          {"search_algorithm", 0.0},
          {"validation", phases.verify_ns() / kNsPerMs},
          {"runtimes", runtimes}};
}

std::string Print(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string T4Writer::Begin(const std::string& log_id) {
  const Json metadata = {{"timeunit", "milliseconds"},
                         {"producer", "regatta"},
                         {"log_id", log_id}};
  return absl::StrCat("{\"schema_version\":\"1.0.0\",\"metadata\":",
                      Print(metadata), ",\"results\":[");
}

std::string T4Writer::Add(const v1::LoggedRecord& record) {
  const v1::TrialResult& result = record.result();
  const std::optional<Verdict> verdict = VerdictOf(result.outcome());
  if (!verdict ||
      (verdict->in_place_of_time == nullptr && result.time_ns() <= 0)) {
    ++left_out_;
    return "";
  }
  const bool correct = verdict->in_place_of_time == nullptr;
  const Json time =
      correct ? Json(result.time_ns() / kNsPerMs) : verdict->in_place_of_time;
  Json measurements = Json::array();
  measurements.push_back({{"name", "time"}, {"value", time}, {"unit", "ms"}});
  const Json document = {
      {"timestamp",
       absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ",
                        absl::FromUnixMillis(record.recorded_unix_ms()),
                        absl::UTCTimeZone())},
      {"configuration", Configuration(result)},
      {"objectives", {"time"}},
      {"times", Times(result)},
      {"invalidity", verdict->invalidity},
      {"correctness", correct ? 1 : 0},
      {"measurements", measurements}};
  return absl::StrCat(results_++ == 0 ? "\n" : ",\n", Print(document));
}

}  // namespace regatta::cli
