// What a task has learnt: facts per schedule, counts per outcome, medians of
// where the time went. Built from records alone, so that a restarted server
// arrives at the same.
//
// Not thread-safe.
#ifndef REGATTA_SERVER_JOB_TASK_RESULTS_H_
#define REGATTA_SERVER_JOB_TASK_RESULTS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "regatta/v1/trial.pb.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta {

// About one schedule, from every record of it.
struct ScheduleFacts {
  bool from_log = false;  // another job measured it
  bool tried = false;     // this job did
  bool ok = false;        // verified and timed at least once
  // Any candidate failure, in any record: a kernel that was wrong once is never
  // used again, however fast it was at other times.
  bool failed = false;
  bool abandoned = false;  // never timed to the end: time_ns is a lower bound
  int64_t time_ns = 0;     // the latest full time
  std::string binary_hash;

  bool usable() const { return ok && !failed; }
};

class TaskResults {
 public:
  // Only records of this compiler say anything about schedules; others of the
  // job are counted (a server may be upgraded in the middle of a job).
  explicit TaskResults(std::string compiler_version = "")
      : compiler_version_(std::move(compiler_version)) {}

  // A record of another job, with the same key, space and compiler.
  void AddFromLog(const v1::TrialResult& result);
  // A record of this job. `arrived` and `committed` bound its way into the log;
  // absent for what was committed before a restart. `wanted`: the job was still
  // waiting for it, so a loss says something about the boards. `forgiven`: its
  // cause was mended since, so that a failure (but for a wrong result) is
  // counted and otherwise forgotten.
  struct Passage {
    SteadyTime arrived, committed;
  };
  void Add(const v1::TrialResult& result, const std::optional<Passage>& passage,
           bool wanted, bool forgiven = false);

  // Another job's record shows that the schedule is wrong.
  void Disprove(const std::string& schedule);

  const std::map<std::string, ScheduleFacts>& schedules() const {
    return schedules_;
  }
  // For which trials of this job held devices (see DeviceNs).
  int64_t device_ns() const { return device_ns_; }
  // New candidate outcomes of the search.
  int64_t trials() const { return trials_; }
  const std::map<std::string, int64_t>& outcomes() const { return outcomes_; }
  // The latest time of the default schedule; 0: none yet.
  int64_t default_ns() const { return default_ns_; }
  // Why the default schedule failed; empty when it has not.
  const std::string& default_failure() const { return default_failure_; }
  const std::string& default_schedule() const { return default_schedule_; }
  // The fastest usable schedule that was timed to the end, the default
  // included. Null: none.
  using Entry = std::pair<const std::string, ScheduleFacts>;
  const Entry* Best() const { return best_; }
  // Infrastructure outcomes since the last candidate outcome, and the last.
  int infrastructure_streak() const { return infrastructure_streak_; }
  const std::string& last_infrastructure() const {
    return last_infrastructure_;
  }
  // Set when the first kSameError candidates all failed alike: how.
  static constexpr int kSameError = 8;
  std::string CommonError() const;

  // New candidate outcomes per second over the last 20 s before `now`.
  double Rate(SteadyTime now) const;
  // Medians; of many trials those of a moment ago: a thirty-second of them may
  // be missing.
  v1::TrialTimes Times() const;

 private:
  void Learn(const v1::TrialResult& result, bool from_log);
  void UpdateBest(const Entry& changed);
  void CountCandidate(const v1::TrialResult& result,
                      const std::optional<Passage>& passage);
  void JudgeCandidate(const v1::TrialResult& result);

  std::string compiler_version_;
  std::map<std::string, ScheduleFacts> schedules_;
  const Entry* best_ = nullptr;                // into schedules_
  std::map<std::string, int64_t> hash_times_;  // of ok binaries, for duplicates
  std::map<std::string, int64_t> outcomes_;
  int64_t trials_ = 0;
  int64_t judged_ = 0;  // candidates that were not forgiven
  int64_t device_ns_ = 0;
  int64_t default_ns_ = 0;
  std::string default_failure_;
  std::string default_schedule_;
  int infrastructure_streak_ = 0;
  std::string last_infrastructure_;
  int64_t same_error_count_ = 0;  // of the first candidates
  std::string first_error_, first_error_shape_;
  std::deque<SteadyTime> recent_;  // arrivals of candidate outcomes
  std::optional<SteadyTime> first_arrival_;
  // Of the latest candidate trials, bounded.
  std::deque<v1::TrialTimes> times_;
  // Of times_ as they were when `medians_of_` were counted.
  mutable std::optional<v1::TrialTimes> medians_;
  mutable int64_t medians_of_ = 0;
};

// "crashed: signal 11", "compile_error".
std::string OutcomeText(const v1::TrialResult& result);

}  // namespace regatta

#endif  // REGATTA_SERVER_JOB_TASK_RESULTS_H_
