#include "tests/bench/planted_log.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/digest.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "compiler/ops/op.h"
#include "compiler/space/space.h"
#include "server/query/workload_info.h"

namespace regatta::bench {
namespace {

constexpr int kCandidates = 100;
constexpr int kRaces = 6;
constexpr int kConfirms = PlantedLog::kConfirms;
static_assert(1 + kCandidates + kRaces + kConfirms ==
              PlantedLog::kRecordsPerJob);
constexpr size_t kMostWorkloads = 4000;
constexpr int kSchedules = 48;
constexpr int kJobsPerBatch = 4;
constexpr int64_t kStartUnixMs = 1'750'000'000'000;

constexpr const char* kClasses[] = {"znver4-2c", "znver4-8c", "znver4-16c"};
constexpr v1::CacheState kCaches[] = {v1::CACHE_STATE_WARM,
                                      v1::CACHE_STATE_COLD};
constexpr char kTarget[] =
    "cpu,triple=x86_64-linux-gnu,mcpu=znver4,vector_bits=512,"
    "vector_registers=32,products=ui8x4";
constexpr char kSandbox[] =
    "cgroup_kill,cgroup_memory,cgroup_pids,ipcns,landlock,mountns,netns,"
    "no_new_privs,process_group,rlimits,seccomp,subreaper,uid";

PlantedWorkload MakeWorkload(const std::string& text, const Target& target,
                             uint64_t seed) {
  auto workload = ParseWorkload(text);
  CHECK(workload.ok()) << workload.status().ToString();
  PlantedWorkload planted{.workload = *workload,
                          .info = DescribeWorkload(*workload)};
  SpaceContext context;
  context.workload = *workload;
  context.target = target;
  context.threads = 1;
  const auto space = Space::Create(std::move(context));
  CHECK(space.ok()) << space.status().ToString();
  planted.schedules.push_back(space->Print(space->Default()));
  Random random(seed);
  while (planted.schedules.size() < kSchedules) {
    const auto sample = space->Sample(random);
    CHECK(sample.has_value()) << text;
    planted.schedules.push_back(space->Print(*sample));
  }
  return planted;
}

// Matrix products of distinct shapes.
std::vector<PlantedWorkload> MakeWorkloads(size_t count, const Target& target,
                                           uint64_t seed) {
  Random random(seed);
  std::set<std::string> texts;
  while (texts.size() < count) {
    const auto extent = [&] { return 8 * (1 + random.Below(256)); };
    const auto m = extent(), n = extent(), k = extent();
    texts.insert(absl::StrCat("matmul(m=", m, ",n=", n, ",k=", k, ")"));
  }
  std::vector<PlantedWorkload> workloads;
  for (const std::string& text : texts) {
    workloads.push_back(MakeWorkload(text, target, random.Next()));
  }
  return workloads;
}

void AddBlocks(Random& random, int count, int64_t time_ns,
               v1::TrialResult& result) {
  const int64_t calls = std::max<int64_t>(1, 1'000'000 / time_ns);
  for (int i = 0; i < count; ++i) {
    v1::Block& block = *result.add_blocks();
    block.set_calls(calls);
    block.set_elapsed_ns(calls * time_ns +
                         static_cast<int64_t>(random.Below(1 + time_ns / 20)));
  }
}

void AddSensor(const char* name, const char* unit, double value,
               v1::TrialResult& result) {
  v1::SensorReading& reading = *result.mutable_environment()->add_sensors();
  reading.set_name(name);
  reading.set_unit(unit);
  reading.set_before(value);
  reading.set_after(value);
}

void SetBoard(int64_t job, const char* device_class, v1::TrialResult& result) {
  v1::Environment& environment = *result.mutable_environment();
  environment.set_agent_version("0.1.0");
  environment.set_compiler_version(PlantedLog::kCompiler);
  environment.set_measure_protocol(PlantedLog::kProtocol);
  environment.set_kernel_release("6.18.44-fc-v857");
  environment.set_sandbox(kSandbox);
  result.set_device_class(device_class);
  result.set_device_id(absl::StrCat(device_class, "-board-", job % 5));
  result.set_boot_id("44f192be-497d-4458-a504-2f98ac3ea913");
  result.set_provenance("agent");
}

// What a trial that was timed adds.
void SetMeasured(Random& random, int blocks, int64_t time_ns,
                 v1::TrialResult& result) {
  AddBlocks(random, blocks, time_ns, result);
  result.set_time_ns(time_ns);
  v1::PhaseTimes& phases = *result.mutable_phases();
  phases.set_build_ns(10'000'000 + random.Below(20'000'000));
  phases.set_wait_ns(random.Below(100'000'000));
  phases.set_verify_ns(1'000'000 + random.Below(8'000'000));
  phases.set_time_ns(10'000'000 + random.Below(20'000'000));
  AddSensor("cpu_frequency", "Hz", 2.596144e9 + random.Below(1000), result);
  AddSensor("load_average", "1", 0.01 * random.Below(400), result);
  const int64_t start = 18'898'053'131'142 + random.Below(1'000'000'000'000);
  result.set_timed_start_boot_ns(start);
  result.set_timed_end_boot_ns(start + phases.time_ns());
  result.set_max_error(random.Unit());
}

// The outcome of a candidate that was not timed; 0: it was.
v1::Outcome FailureOf(uint64_t percent) {
  if (percent < 3) return v1::OUTCOME_COMPILE_ERROR;
  if (percent < 5) return v1::OUTCOME_CRASHED;
  if (percent < 7) return v1::OUTCOME_TIMED_OUT;
  if (percent < 10) return v1::OUTCOME_DUPLICATE_BINARY;
  if (percent < 11) return v1::OUTCOME_AGENT_LOST;
  return v1::OUTCOME_UNSPECIFIED;
}

void SetCandidate(Random& random, int64_t default_ns, v1::TrialResult& result) {
  const v1::Outcome failure = FailureOf(random.Below(100));
  if (failure != v1::OUTCOME_UNSPECIFIED) {
    result.set_outcome(failure);
    result.set_detail("ended with signal 11 (address 0x7f3a5c001000)");
    return;
  }
  const double factor = 0.6 + 3.5 * random.Unit();
  result.set_abandoned(factor > 3);
  SetMeasured(random, factor > 3 ? 2 : 5,
              static_cast<int64_t>(default_ns * factor), result);
}

}  // namespace

PlantedLog::PlantedLog(int64_t records, uint64_t seed)
    : jobs_(std::max<int64_t>(1, records / kRecordsPerJob)),
      seed_(seed),
      target_(ParseTarget(kTarget).value()) {
  const size_t count = std::min<size_t>(
      kMostWorkloads, std::max<size_t>(8, static_cast<size_t>(jobs_) / 2));
  workloads_ = MakeWorkloads(count, target_, seed);
}

size_t PlantedLog::WorkloadOfJob(int64_t job) const {
  return Random(seed_ ^ (job * 2 + 1)).Below(workloads_.size());
}

BestKey PlantedLog::KeyOfJob(int64_t job) const {
  Random random(seed_ ^ (job * 2 + 1));
  const size_t workload = random.Below(workloads_.size());
  return {.workload_key = workloads_[workload].info.key,
          .device_class = kClasses[random.Below(std::size(kClasses))],
          .threads = 1,
          .cache = kCaches[random.Below(std::size(kCaches))]};
}

PlantedJob PlantedLog::MakeJob(int64_t job) const {
  const PlantedWorkload& workload = workloads_[WorkloadOfJob(job)];
  const BestKey key = KeyOfJob(job);
  Random random(seed_ ^ (job * 2 + 2));
  const int64_t default_ns = 50'000 + random.Below(5'000'000);
  const size_t winner = 1 + random.Below(kSchedules - 1);

  v1::TrialResult common;
  v1::TrialSpec& spec = *common.mutable_spec();
  spec.set_job_id(job + 1);
  spec.set_workload(workload.info.text);
  spec.set_workload_key(key.workload_key);
  spec.set_device_class(key.device_class);
  spec.set_target(kTarget);
  spec.mutable_policy()->set_threads(key.threads);
  spec.mutable_policy()->set_cache(key.cache);
  spec.mutable_schedule()->set_space("cpu");
  spec.mutable_schedule()->set_space_version(kSpaceVersion);
  spec.set_incumbent_ns(default_ns);
  spec.set_input_seed(random.Next());
  spec.set_compiler_version(kCompiler);
  SetBoard(job, key.device_class.c_str(), common);
  common.set_outcome(v1::OUTCOME_OK);
  common.set_attempt(1);
  common.set_lease_epoch((int64_t{1} << 32) + job);

  PlantedJob planted;
  const auto add = [&](v1::TrialKind kind, size_t schedule) -> auto& {
    const int64_t ordinal = planted.results.size();
    v1::TrialResult& result = planted.results.emplace_back(common);
    result.mutable_spec()->set_trial_id(absl::StrCat(job + 1, "/0/", ordinal));
    result.mutable_spec()->set_ordinal(ordinal);
    result.mutable_spec()->set_kind(kind);
    const std::string& text = workload.schedules[schedule];
    result.mutable_spec()->mutable_schedule()->set_text(text);
    result.set_binary_hash(Sha256Hex(absl::StrCat(key.workload_key, text)));
    return result;
  };
  SetMeasured(random, 5, default_ns, add(v1::TRIAL_KIND_DEFAULT, 0));
  for (int i = 0; i < kCandidates; ++i) {
    SetCandidate(
        random, default_ns,
        add(v1::TRIAL_KIND_CANDIDATE, 1 + random.Below(kSchedules - 1)));
  }
  for (int i = 0; i < kRaces; ++i) {
    SetMeasured(random, 10, default_ns * 0.7,
                add(v1::TRIAL_KIND_RACE, (winner + i) % kSchedules));
  }
  for (int i = 0; i < kConfirms; ++i) {
    SetMeasured(random, 20, default_ns * 0.6,
                add(v1::TRIAL_KIND_CONFIRM, (winner + i) % kSchedules));
  }
  const v1::TrialResult& confirmed = planted.results[1 + kCandidates + kRaces];
  const int64_t time_ns = confirmed.time_ns();
  planted.verdict = {.key = key,
                     .trial_id = confirmed.spec().trial_id(),
                     .time_ns = time_ns,
                     .low_ns = time_ns - time_ns / 100,
                     .high_ns = time_ns + time_ns / 100,
                     .default_ns = default_ns,
                     .speedup = 1.66,
                     .speedup_low = 1.6,
                     .speedup_high = 1.7,
                     .job_id = job + 1};
  return planted;
}

absl::Status PlantedLog::WriteJobs(TuningLog& log, int64_t from,
                                   int64_t end) const {
  std::vector<v1::TrialResult> results;
  std::vector<Publication> verdicts;
  for (int64_t i = from; i < end; ++i) {
    PlantedJob job = MakeJob(i);
    std::move(job.results.begin(), job.results.end(),
              std::back_inserter(results));
    verdicts.push_back(std::move(job.verdict));
  }
  const int64_t now = kStartUnixMs + from * 1000;
  RETURN_IF_ERROR(log.Append(results, now).status());
  for (const Publication& verdict : verdicts) {
    RETURN_IF_ERROR(log.Publish(verdict, now));
  }
  return absl::OkStatus();
}

absl::Status PlantedLog::WriteTo(TuningLog& log, int threads) const {
  // Runs `step` with the next number below `end` until one fails.
  std::mutex mutex;
  absl::Status first_error;
  const auto on_all_threads =
      [&](int64_t end, const std::function<absl::Status(int64_t)>& step) {
        std::atomic<int64_t> next = 0;
        std::vector<std::thread> workers;
        for (int i = 0; i < threads; ++i) {
          workers.emplace_back([&] {
            for (int64_t at = next++; at < end; at = next++) {
              const absl::Status status = step(at);
              if (status.ok()) continue;
              std::lock_guard lock(mutex);
              first_error = status;
              return;
            }
          });
        }
        for (std::thread& worker : workers) worker.join();
        return first_error;
      };
  RETURN_IF_ERROR(on_all_threads(
      static_cast<int64_t>(workloads_.size()),
      [&](int64_t i) { return log.PutWorkload(workloads_[i].info); }));
  const int64_t batches = (jobs_ + kJobsPerBatch - 1) / kJobsPerBatch;
  return on_all_threads(batches, [&](int64_t i) {
    return WriteJobs(log, i * kJobsPerBatch,
                     std::min(jobs_, (i + 1) * kJobsPerBatch));
  });
}

}  // namespace regatta::bench
