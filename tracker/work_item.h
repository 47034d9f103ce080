// A unit of work that a server submitted, from submission to the commit of its
// last trial.
#ifndef REGATTA_TRACKER_WORK_ITEM_H_
#define REGATTA_TRACKER_WORK_ITEM_H_

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "tracker/dispatch_queue.h"

namespace regatta {

// Assignments carry the server's id in theirs, since servers number their jobs
// each for itself and results must find the way back to the right one.
inline std::string AssignmentId(std::string_view server_id,
                                std::string_view work_id) {
  return absl::StrCat(std::string(server_id), "/", std::string(work_id));
}
// "" when the id was not made by AssignmentId.
inline std::string_view ServerOf(std::string_view assignment_id) {
  const size_t slash = assignment_id.find('/');
  return slash == std::string_view::npos ? std::string_view()
                                         : assignment_id.substr(0, slash);
}

// Where one trial of the work stands.
struct TrialState {
  int reported_attempt = 0;  // 0: no result yet
  bool committed = false;
  std::set<std::string> failed_boards;  // that failed while it ran
};

struct WorkItem {
  enum class State { kQueued, kLeased, kCancelling, kFinished };

  std::string server_id;
  std::string assignment_id;
  int64_t sequence = 0;
  v1::Work work;
  std::vector<TrialState> trials;  // as in work.trials
  State state = State::kQueued;
  int attempt = 1;
  // This tracker has sent it to an agent: what another agent brings along
  // under this id is then stale.
  bool dispatched = false;
  std::string finished_by;  // agent whose result was the last; kFinished only
  std::set<std::string> failed_devices;
  // The last loss, for the verdict after the last attempt.
  std::string loss;
  std::string loss_device;
  bool loss_is_fault = false;

  bool AllReported() const {
    return std::all_of(trials.begin(), trials.end(), [](const TrialState& t) {
      return t.reported_attempt > 0 || t.committed;
    });
  }
  bool AllCommitted() const {
    return std::all_of(trials.begin(), trials.end(),
                       [](const TrialState& t) { return t.committed; });
  }
  MatchKey key() const {
    return {work.device_class(), work.compiler_version(), work.space(),
            work.space_version()};
  }
  JobKey job() const { return {server_id, work.job_id()}; }
  DispatchQueue::Entry entry() const {
    const auto weight = [](double w) { return w > 0 ? w : 1; };
    return {.key = key(),
            .job = job(),
            .user = work.user(),
            .deadline_unix_ms = work.deadline_unix_ms(),
            .priority = work.priority(),
            .sequence = sequence,
            .assignment_id = assignment_id,
            .task = work.trials(0).task(),
            .trials = work.trials_size(),
            .job_weight = weight(work.job_weight()),
            .task_weight = weight(work.task_weight())};
  }
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_WORK_ITEM_H_
