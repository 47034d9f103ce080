#include "server/job/task_history.h"

#include <utility>

#include "base/status_macros.h"
#include "server/query/workload_info.h"

namespace regatta {
namespace {

constexpr int kNeighbours = 4;

absl::Status AddSuggestions(
    const TuningLog& log, const TaskSpec& spec,
    const std::function<bool(const std::string&)>& usable_class,
    std::vector<std::string>* suggestions) {
  const auto add = [&](const BestKnown& best) {
    suggestions->push_back(best.record.result.spec().schedule().text());
  };
  BestKey key = spec.Key();
  // What another log found for this very key may be tried here, too.
  for (const bool imported : {false, true}) {
    key.imported = imported;
    ASSIGN_OR_RETURN(auto best, log.Best(key));
    if (best) add(*best);
  }
  ASSIGN_OR_RETURN(auto neighbours,
                   log.BestOfNeighbours(DescribeWorkload(spec.workload),
                                        spec.Key(), kNeighbours));
  for (const BestKnown& neighbour : neighbours) add(neighbour);
  ASSIGN_OR_RETURN(auto others, log.BestOfWorkload(spec.workload.key));
  int taken = 0;
  for (const BestKnown& other : others) {
    if (other.key == spec.Key() || other.key == key) continue;
    const bool same_class = other.key.device_class == spec.device_class;
    if (!same_class && !usable_class(other.key.device_class)) continue;
    add(other);
    if (++taken == kNeighbours) break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TaskHistory> LoadTaskHistory(
    const TuningLog& log, const TaskSpec& spec, const std::string& target,
    const std::string& compiler_version,
    const std::function<bool(const std::string&)>& usable_class) {
  TaskHistory history;
  RecordFilter filter;
  filter.workload_key = spec.workload.key;
  filter.device_class = spec.device_class;
  filter.threads = spec.policy.threads();
  filter.cache = spec.policy.cache();
  if (spec.fresh) filter.job_id = spec.job_id;
  const auto visit = [&](const StoredRecord& record) {
    const v1::TrialSpec& asked = record.result.spec();
    if (asked.job_id() == spec.job_id && asked.task() == spec.index) {
      history.own.push_back(record.result);
      return true;
    }
    if (!spec.fresh && asked.target() == target &&
        asked.compiler_version() == compiler_version) {
      history.reusable.push_back(record.result);
      history.reusable.back().clear_blocks();
    }
    return true;
  };
  RETURN_IF_ERROR(log.ForEachRecord(filter, visit));
  if (!spec.fresh) {
    RETURN_IF_ERROR(
        AddSuggestions(log, spec, usable_class, &history.suggestions));
  }
  return history;
}

}  // namespace regatta
