#include "device_agent/measure/trial_timer.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/robust_stats.h"
#include "base/status_macros.h"
#include "device_agent/spawner/cpu_list.h"
#include "proto/block_time.h"
#include "proto/outcome_names.h"

namespace regatta {
namespace {

constexpr int64_t kShortestLimitMs = 2'000;
constexpr int64_t kLongestLimitMs = 60'000;
// Start, load, verify, and what screening takes whatever the kernel.
constexpr int64_t kFixedMs = 2'000;
// Calls of one screening besides the timed 50 ms: verifying, warm-up, blocks.
constexpr int64_t kSingleCalls = 8;
constexpr int64_t kSlack = 10;
// A default has no incumbent; it runs at least at this speed.
constexpr double kSlowestFlops = 2e8;
// Of all interleaved workers together, beside what their trials may take.
constexpr int64_t kInterleaveLimitMs = 120'000;
// A block longer than this many first blocks has hung.
constexpr int64_t kHungBlock = 20;
constexpr double kPlausible = 1.5;
constexpr int64_t kDefaultLastCacheBytes = 32 << 20;
constexpr int64_t kMaxEvictBytes = int64_t{512} << 20;

void Settle(v1::Outcome outcome, const std::string& detail,
            v1::TrialResult* result) {
  result->set_outcome(outcome);
  result->set_detail(detail);
}

void SettleError(const absl::Status& status, v1::TrialResult* result) {
  Settle(absl::IsCancelled(status) ? v1::OUTCOME_CANCELLED
                                   : v1::OUTCOME_DEVICE_FAULT,
         std::string(status.message()), result);
}

void NoteVerified(const v1::Verified& verified, v1::TrialResult* result) {
  result->set_max_error(verified.max_error());
  result->mutable_phases()->set_verify_ns(verified.verify_ns());
}

void NoteTimed(const v1::Timed& timed, v1::TrialResult* result) {
  result->set_abandoned(timed.abandoned());
  result->set_timed_start_boot_ns(timed.start_boot_ns());
  result->set_timed_end_boot_ns(timed.end_boot_ns());
  result->mutable_phases()->set_time_ns(timed.timing_ns());
}

int Threads(const v1::TrialSpec& spec) {
  return std::max(1, spec.policy().threads());
}

// Around a run that is timed.
class Window {
 public:
  Window(const TrialTimerOptions& options, int64_t longest_ms)
      : options_(options) {
    options_.on_window(absl::Milliseconds(longest_ms));
  }
  ~Window() { options_.on_window(absl::ZeroDuration()); }
  Window(const Window&) = delete;

 private:
  const TrialTimerOptions& options_;
};

}  // namespace

TrialTimer::TrialTimer(TrialTimerOptions options, CorePlan plan,
                       std::shared_ptr<SpawnerClient> spawner,
                       const CoreLocks* cores, const Clock* clock)
    : options_(std::move(options)),
      plan_(std::move(plan)),
      spawner_(std::move(spawner)),
      cores_(cores),
      clock_(clock),
      sensors_(SensorContext{options_.root, plan_.cpus}) {
  SetProbed(options_.device.info);
  if (options_.device.needs.keep_worker) {
    v1::RunRequest prepare;
    prepare.set_prepare_kind(options_.device.board.kind());
    prepare.set_device(options_.device.board.selector());
    pool_ = std::make_unique<WorkerPool>(prepare, spawner_, clock_);
  }
}

void TrialTimer::SetProbed(const v1::DeviceInfo& device) {
  last_cache_bytes_ = device.l3_bytes();
  // On a machine too busy for a noise floor the peak came out low as well, and
  // honest kernels would be called implausible by it.
  peak_flops_per_s_ = device.has_noise_floor() ? device.peak_flops_per_s() : 0;
}

absl::StatusOr<CoreLocks::Held> TrialTimer::TakeCores(
    int count, const RunControl& control) {
  ASSIGN_OR_RETURN(
      CoreLocks::Held cores,
      cores_->Take(plan_.TimingCpus(count), CoreLocks::Use::kTiming,
                   [&] { return control.Stopped(); }));
  if (control.Stopped()) return absl::CancelledError("stopped");
  return cores;
}

absl::StatusOr<std::unique_ptr<RunClient>> TrialTimer::StartWorker(
    const ReadyTrial& trial, const CoreLocks::Held& cores, bool interleave,
    int64_t wall_limit_ms) {
  const v1::TrialSpec& spec = *trial.spec;
  v1::RunRequest request;
  request.set_input_seed(spec.input_seed());
  request.set_cache(spec.policy().cache());
  request.set_threads(Threads(spec));
  request.set_device(options_.device.board.selector());
  request.set_reduction_length(trial.built->code->info.reduction_length());
  request.set_incumbent_ns(spec.incumbent_ns());
  request.set_interleave(interleave);
  if (spec.policy().cache() == v1::CACHE_STATE_COLD) {
    const int64_t probed = last_cache_bytes_;
    const int64_t last_cache = probed > 0 ? probed : kDefaultLastCacheBytes;
    request.set_evict_bytes(std::min(2 * last_cache, kMaxEvictBytes));
  }
  RunWorkerOptions options = options_.run_worker;
  options.cpu_list = CpuList(spec);
  options.wall_limit_ms = wall_limit_ms;
  options.held = cores.fds();
  options.needs = options_.device.needs;
  const int module = trial.built->code->file.get();
  const int reference = trial.built->reference->get();
  return pool_ != nullptr ? RunClient::StartKept(std::move(options), *pool_,
                                                 request, module, reference)
                          : RunClient::Start(std::move(options), spawner_,
                                             request, module, reference);
}

int TrialTimer::Cores(const v1::TrialSpec& spec) const {
  return options_.device.needs.all_cores ? static_cast<int>(plan_.cpus.size())
                                         : Threads(spec);
}

std::string TrialTimer::CpuList(const v1::TrialSpec& spec) const {
  return FormatCpuList(plan_.TimingCpus(Cores(spec)));
}

int64_t TrialTimer::StartMs() const {
  return pool_ != nullptr ? 0 : options_.device.needs.start_ms;
}

int64_t TrialTimer::ScreeningLimitMs(const ReadyTrial& trial) const {
  const int64_t incumbent_ns = trial.spec->incumbent_ns();
  if (incumbent_ns > 0) {
    return StartMs() + std::clamp(kFixedMs + kSlack * kSingleCalls *
                                                 incumbent_ns / 1'000'000,
                                  kShortestLimitMs, kLongestLimitMs);
  }
  return LongestLimitMs(trial);
}

int64_t TrialTimer::LongestLimitMs(const ReadyTrial& trial) const {
  const double flops = trial.built->code->info.flops();
  return StartMs() +
         std::clamp(options_.run_limit_ms +
                        static_cast<int64_t>(1e3 * kSingleCalls * flops /
                                             kSlowestFlops),
                    kShortestLimitMs,
                    std::max(kLongestLimitMs, options_.run_limit_ms));
}

bool TrialTimer::SettledBefore(const ReadyTrial& trial) {
  const v1::TrialSpec& spec = *trial.spec;
  const std::optional<std::string> earlier = duplicates_.EarlierTrial(
      trial.assignment_id, spec, trial.built->code->info.binary_hash());
  if (!earlier.has_value()) return false;
  Settle(v1::OUTCOME_DUPLICATE_BINARY,
         absl::StrCat("same code as trial ", *earlier), trial.result);
  return true;
}

void TrialTimer::Forget(const ReadyTrial& trial) {
  duplicates_.Forget(trial.assignment_id, *trial.spec,
                     trial.built->code->info.binary_hash());
}

void TrialTimer::CoolDown(int repeat, const RunControl& control) const {
  constexpr absl::Duration kStep = absl::Milliseconds(25);
  const SteadyTime end = clock_->Steady() + kFirstPause * (1 << repeat);
  while (!control.Stopped() && clock_->Steady() < end) {
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(kStep));
  }
}

void TrialTimer::TimeAlone(const ReadyTrial& trial, RunControl& control) {
  if (SettledBefore(trial)) return;
  for (int repeat = 0; !TimeOnce(trial, control); ++repeat) {
    if (repeat == kRepeats || control.Stopped()) {
      return Settle(
          v1::OUTCOME_THROTTLED,
          absl::StrCat("the processors were throttled during each of ",
                       repeat + 1, " runs"),
          trial.result);
    }
    CoolDown(repeat, control);
  }
}

bool TrialTimer::TimeOnce(const ReadyTrial& trial, RunControl& control) {
  v1::TrialResult& result = *trial.result;
  absl::StatusOr<CoreLocks::Held> cores =
      TakeCores(Cores(*trial.spec), control);
  if (!cores.ok()) {
    SettleError(cores.status(), &result);
    return true;
  }
  result.set_timed_cpu_list(CpuList(*trial.spec));
  const int64_t limit_ms = ScreeningLimitMs(trial);
  const Window window(options_, limit_ms);
  sensors_.Before();
  absl::StatusOr<std::unique_ptr<RunClient>> started =
      StartWorker(trial, *cores, /*interleave=*/false, limit_ms);
  if (!started.ok()) {
    SettleError(started.status(), &result);
    return true;
  }
  RunClient& worker = **started;
  control.Register(&worker);
  std::optional<v1::Timed> timed;
  if (const auto verified = worker.WaitVerified()) {
    control.Tick();
    NoteVerified(*verified, &result);
    timed = worker.WaitTimed();
    if (timed.has_value()) NoteTimed(*timed, &result);
  }
  worker.End();
  control.Unregister(&worker);
  result.mutable_environment()->clear_sensors();
  AddReadings(sensors_.After(), &result);
  // Sensors speak for the whole run, so the whole run is discarded.
  const bool throttled = sensors_.Throttled();
  if (timed.has_value()) {
    for (v1::Block& block : *timed->mutable_blocks()) {
      block.set_throttled(throttled);
      *result.add_blocks() = block;
    }
  }
  if (throttled && !worker.ending().has_value()) return false;
  Conclude(trial, worker);
  return true;
}

void TrialTimer::TimeInterleaved(const std::vector<ReadyTrial>& all,
                                 RunControl& control) {
  std::vector<ReadyTrial> trials;
  int count = 1;
  for (const ReadyTrial& trial : all) {
    if (SettledBefore(trial)) continue;
    trials.push_back(trial);
    count = std::max(count, Cores(*trial.spec));
  }
  if (trials.empty()) return;
  absl::StatusOr<CoreLocks::Held> cores = TakeCores(count, control);
  if (!cores.ok()) {
    for (const ReadyTrial& trial : trials) {
      SettleError(cores.status(), trial.result);
    }
    return;
  }
  // Each waits for the others; what one may take by itself is bounded by how
  // long its answers are waited for.
  int64_t wall_limit_ms = kInterleaveLimitMs;
  for (const ReadyTrial& trial : trials) {
    wall_limit_ms += (kFewestRounds + 2) * LongestLimitMs(trial);
  }
  const Window window(options_, wall_limit_ms);
  sensors_.Before();
  std::vector<ReadyTrial> running;
  std::vector<std::unique_ptr<RunClient>> workers;
  for (const ReadyTrial& trial : trials) {
    absl::StatusOr<std::unique_ptr<RunClient>> started =
        StartWorker(trial, *cores, /*interleave=*/true, wall_limit_ms);
    if (!started.ok()) {
      SettleError(started.status(), trial.result);
      continue;
    }
    trial.result->set_timed_cpu_list(CpuList(*trial.spec));
    running.push_back(trial);
    workers.push_back(*std::move(started));
    control.Register(workers.back().get());
    if (const auto verified =
            workers.back()->WaitVerified(LongestLimitMs(trial))) {
      NoteVerified(*verified, trial.result);
    }
    control.Tick();
  }
  RunRounds(running, workers, control);
  for (size_t i = 0; i < running.size(); ++i) {
    if (!workers[i]->ending().has_value()) {
      if (const auto timed =
              workers[i]->FinishInterleaved(LongestLimitMs(running[i]))) {
        NoteTimed(*timed, running[i].result);
      }
    }
    workers[i]->End();
    control.Unregister(workers[i].get());
  }
  const std::vector<v1::SensorReading> readings = sensors_.After();
  for (size_t i = 0; i < running.size(); ++i) {
    AddReadings(readings, running[i].result);
    Conclude(running[i], *workers[i]);
  }
}

bool TrialTimer::EnoughRounds(int rounds, absl::Duration spent) {
  return rounds >= kMaxRounds ||
         (rounds >= kMinRounds && spent >= kInterleaveTime) ||
         (rounds >= kFewestRounds && spent >= kLongestInterleave);
}

void TrialTimer::RunRounds(const std::vector<ReadyTrial>& trials,
                           std::vector<std::unique_ptr<RunClient>>& workers,
                           RunControl& control) {
  if (trials.empty()) return;
  std::vector<size_t> order(trials.size());
  std::iota(order.begin(), order.end(), size_t{0});
  Random random(trials[0].spec->input_seed());
  // How long a block of each is waited for; the first one warms up too.
  std::vector<int64_t> limits_ms;
  for (const ReadyTrial& trial : trials) {
    limits_ms.push_back(LongestLimitMs(trial));
  }
  const SteadyTime started = clock_->Steady();
  int repeats = 0;
  for (int round = 0;
       !control.Stopped() && !EnoughRounds(round, clock_->Steady() - started);
       ++round) {
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[random.Below(i)]);
    }
    bool throttled = false;
    for (size_t i : order) {
      const SteadyTime asked = clock_->Steady();
      const double throttles = sensors_.ThrottleCount();
      if (auto block = workers[i]->TimeBlock(limits_ms[i])) {
        block->set_throttled(sensors_.ThrottleCount() > throttles);
        throttled |= block->throttled();
        *trials[i].result->add_blocks() = *std::move(block);
      }
      if (round == 0) {
        limits_ms[i] = std::max(
            kShortestLimitMs,
            kHungBlock * absl::ToInt64Milliseconds(clock_->Steady() - asked));
      }
      if (control.Stopped()) break;
    }
    control.Tick();
    if (throttled && repeats < kRepeats) {
      CoolDown(repeats++, control);
      --round;  // it compares nothing
    }
  }
}

void TrialTimer::Conclude(const ReadyTrial& trial, RunClient& worker) {
  if (worker.ending().has_value()) {
    trial.result->clear_blocks();
    Settle(worker.ending()->outcome, worker.ending()->detail, trial.result);
  } else {
    JudgeTimes(trial);
  }
  if (IsCandidateOutcome(trial.result->outcome())) {
    duplicates_.Remember(trial.assignment_id, *trial.spec,
                         trial.built->code->info.binary_hash());
  }
}

void TrialTimer::JudgeTimes(const ReadyTrial& trial) {
  v1::TrialResult& result = *trial.result;
  std::vector<double> per_call;
  for (const v1::Block& block : result.blocks()) {
    if (!block.throttled()) per_call.push_back(NsPerCall(block));
  }
  if (per_call.empty() && !result.blocks().empty()) {
    return Settle(v1::OUTCOME_THROTTLED,
                  "the processors were throttled during every block", &result);
  }
  if (per_call.empty()) {
    return Settle(v1::OUTCOME_DEVICE_FAULT, "no block was timed", &result);
  }
  const double time_ns = Median(per_call);
  result.set_time_ns(std::max<int64_t>(1, static_cast<int64_t>(time_ns + 0.5)));
  const v1::BuiltModule& code = trial.built->code->info;
  const double peak = peak_flops_per_s_ * Threads(*trial.spec);
  if (code.all_f32() && peak > 0 &&
      code.flops() / (time_ns * 1e-9) > kPlausible * peak) {
    return Settle(v1::OUTCOME_IMPLAUSIBLE,
                  absl::StrFormat(
                      "%.0f ns would be %.1f GFLOP/s, more than %.1f times "
                      "the measured peak of %.1f",
                      time_ns, code.flops() / time_ns, kPlausible, peak / 1e9),
                  &result);
  }
  Settle(v1::OUTCOME_OK, "", &result);
}

void TrialTimer::AddReadings(const std::vector<v1::SensorReading>& readings,
                             v1::TrialResult* result) {
  for (const v1::SensorReading& reading : readings) {
    *result->mutable_environment()->add_sensors() = reading;
  }
}

}  // namespace regatta
