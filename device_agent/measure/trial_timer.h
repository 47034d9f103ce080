// The timing half of trials: run workers on the device's timing cores, one
// after the other or interleaved, and results from what they say.
//
// One per device; not thread-safe but for SetProbed: used by its timing thread.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_TRIAL_TIMER_H_
#define REGATTA_DEVICE_AGENT_MEASURE_TRIAL_TIMER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "device_agent/measure/builder.h"
#include "device_agent/measure/core_locks.h"
#include "device_agent/measure/duplicate_index.h"
#include "device_agent/measure/run_client.h"
#include "device_agent/sensors/sensor_set.h"
#include "device_agent/spawner/spawner_client.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

// Version of how times are taken (block_timer.h); part of every record.
inline constexpr char kMeasureProtocol[] = "1";

struct TrialTimerOptions {
  ServedDevice device;
  RunWorkerOptions run_worker;  // cpu_list, limits and lock are set per run
  int64_t run_limit_ms = 10'000;
  std::string root;  // of the sensors' files: "" outside tests
  // A run is about to be timed, for at most so long; zero: it is over. Never
  // empty.
  std::function<void(absl::Duration longest)> on_window;
};

// One trial ready to be timed.
struct ReadyTrial {
  const v1::TrialSpec* spec;
  const Built* built;
  v1::TrialResult* result;  // outcome, detail, blocks, times, phases are set
  std::string assignment_id;
};

// How the work can be stopped from outside while it runs.
class RunControl {
 public:
  virtual ~RunControl() = default;
  virtual bool Stopped() const = 0;
  // While registered, a worker is killed when the work is stopped.
  virtual void Register(RunClient* worker) = 0;
  virtual void Unregister(RunClient* worker) = 0;
  virtual void Tick() = 0;  // progress was made
};

class TrialTimer {
 public:
  // Threads of a run: each has a processor, whose lock the spawner holds.
  static constexpr int kMaxThreads = SpawnerClient::kMaxHeld;

  // REQUIRES: `cores` and `clock` outlive it.
  TrialTimer(TrialTimerOptions options, CorePlan plan,
             std::shared_ptr<SpawnerClient> spawner, const CoreLocks* cores,
             const Clock* clock);

  // Interleaving: at least kMinRounds; more while kInterleaveTime lasts, up to
  // kMaxRounds; for slow kernels fewer, once kLongestInterleave is spent, but
  // always kFewestRounds: below that no comparison reaches 95 %, so that the
  // whole run would be for nothing.
  static constexpr int kMinRounds = 10, kMaxRounds = 20, kFewestRounds = 6;
  static constexpr absl::Duration kInterleaveTime = absl::Seconds(3);
  static constexpr absl::Duration kLongestInterleave = absl::Seconds(15);

  static bool EnoughRounds(int rounds, absl::Duration spent);

  // A run, or a round, that was throttled is done again after a pause that
  // doubles every time, at most so often. Its blocks stay, marked.
  static constexpr int kRepeats = 3;
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(250);

  // REQUIRES, of both: no trial asks for more threads than the plan has CPUs.
  void TimeAlone(const ReadyTrial& trial, RunControl& control);
  // In rounds; in each, every trial that still lives times one block, in an
  // order drawn from the first trial's seed. Block i of every trial is of round
  // i. One that takes far longer than its first block is killed, for itself.
  void TimeInterleaved(const std::vector<ReadyTrial>& trials,
                       RunControl& control);

  // The trial's time says nothing after all.
  void Forget(const ReadyTrial& trial);

  // What probing found out of the device. From any thread; what is timed from
  // then on goes by it.
  void SetProbed(const v1::DeviceInfo& device);

  // Sensors that this device has not, with reasons.
  const std::vector<std::string>& absent_sensors() const {
    return sensors_.absent();
  }

 private:
  // One run of TimeAlone. False: it was throttled and nothing else was wrong.
  bool TimeOnce(const ReadyTrial& trial, RunControl& control);
  // Lets the board cool down before repetition `repeat`, from 0; ends early
  // when the work is stopped.
  void CoolDown(int repeat, const RunControl& control) const;
  // The cores of a run, for as long as it lasts.
  absl::StatusOr<CoreLocks::Held> TakeCores(int count,
                                            const RunControl& control);
  absl::StatusOr<std::unique_ptr<RunClient>> StartWorker(
      const ReadyTrial& trial, const CoreLocks::Held& cores, bool interleave,
      int64_t wall_limit_ms);
  // True when the trial needs no timing: an earlier one had the same code.
  bool SettledBefore(const ReadyTrial& trial);
  void RunRounds(const std::vector<ReadyTrial>& trials,
                 std::vector<std::unique_ptr<RunClient>>& workers,
                 RunControl& control);
  void Conclude(const ReadyTrial& trial, RunClient& worker);
  // Ok, implausible or throttled, from the blocks.
  void JudgeTimes(const ReadyTrial& trial);
  void AddReadings(const std::vector<v1::SensorReading>& readings,
                   v1::TrialResult* result);
  // How many processors a trial has to itself, and which.
  int Cores(const v1::TrialSpec& spec) const;
  std::string CpuList(const v1::TrialSpec& spec) const;
  // What a trial's limit holds for starting: nothing where that is done before.
  int64_t StartMs() const;
  int64_t ScreeningLimitMs(const ReadyTrial& trial) const;
  // Of one that may be far slower than the incumbent, as a default may.
  int64_t LongestLimitMs(const ReadyTrial& trial) const;

  const TrialTimerOptions options_;
  const CorePlan plan_;
  const std::shared_ptr<SpawnerClient> spawner_;
  const CoreLocks* const cores_;
  const Clock* const clock_;
  // 0 while unknown.
  std::atomic<int64_t> last_cache_bytes_ = 0;
  std::atomic<double> peak_flops_per_s_ = 0;
  std::unique_ptr<WorkerPool> pool_;  // null where workers are not kept
  SensorSet sensors_;
  DuplicateIndex duplicates_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_TRIAL_TIMER_H_
