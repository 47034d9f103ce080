// One run: a fleet at work, faults for a while, then a fleet that has to
// recover.
//
// Not thread-safe.
#ifndef REGATTA_TESTS_CHAOS_CAMPAIGN_H_
#define REGATTA_TESTS_CHAOS_CAMPAIGN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/chaos/checker.h"
#include "tests/chaos/cluster.h"
#include "tests/chaos/fault_menu.h"
#include "tests/chaos/questions.h"

namespace regatta::testing {

class Campaign {
 public:
  struct Options {
    uint64_t seed = 1;
    absl::Duration faults_for = absl::Seconds(300);
    int64_t trials = 1000;  // of each job
    bool disks = false;     // can be filled
    bool quiet = false;     // no line for each fault
  };

  Campaign(Options options, Cluster* cluster);

  // The three phases. An error is an invariant that could not be waited for,
  // beginning with its name ("recovers: ...").
  absl::Status Baseline();
  void Faults();
  absl::Status Recover();

  const std::vector<AskedJob>& jobs() const { return jobs_; }
  const FaultMenu& menu() const { return menu_; }
  int64_t releases() const { return releases_; }
  absl::Duration recovery() const { return recovery_; }

 private:
  // One round of what goes on all the time; a short sleep.
  void Tend();
  bool TendUntil(absl::Duration limit, const std::function<bool()>& condition);
  // The next job, under a name that shows whether an earlier try got through.
  bool Submit();
  void WatchJob();
  // As an operator who looks every few seconds: boards whose workers keep being
  // killed are quarantined, rightly.
  void ReleaseBoards(const Json& devices);
  bool JobEnded() const { return state_ == "done" || state_ == "failed"; }
  int64_t TrialsDone() const { return earlier_trials_ + trials_; }
  void PrintProgress(const std::string& phase, absl::Duration left);

  const Options options_;
  Cluster* const cluster_;
  FaultMenu menu_;
  std::vector<AskedJob> jobs_;
  std::vector<Question> questions_;
  SteadyTime started_, next_line_;
  // Of the last job, as the server said last.
  std::string state_, reason_;
  int64_t trials_ = 0, earlier_trials_ = 0;
  int64_t ready_ = 0;  // boards that take work
  int64_t releases_ = 0;
  absl::Duration recovery_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_CHAOS_CAMPAIGN_H_
