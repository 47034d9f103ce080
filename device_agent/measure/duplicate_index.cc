#include "device_agent/measure/duplicate_index.h"

#include <algorithm>

namespace regatta {

DuplicateIndex::Trials& DuplicateIndex::TrialsOf(
    const std::string& assignment_id, const v1::TrialSpec& spec) {
  const size_t slash = assignment_id.find('/');
  const Task task(
      slash == std::string::npos ? "" : assignment_id.substr(0, slash),
      spec.job_id(), spec.task(), spec.policy().threads(),
      spec.policy().cache());
  const auto found =
      std::find_if(tasks_.begin(), tasks_.end(),
                   [&](const auto& entry) { return entry.first == task; });
  if (found != tasks_.end()) {
    tasks_.splice(tasks_.begin(), tasks_, found);
  } else {
    tasks_.emplace_front(task, Trials());
    if (tasks_.size() > kTasks) tasks_.pop_back();
  }
  return tasks_.front().second;
}

std::optional<std::string> DuplicateIndex::EarlierTrial(
    const std::string& assignment_id, const v1::TrialSpec& spec,
    const std::string& binary_hash) {
  if (spec.kind() != v1::TRIAL_KIND_CANDIDATE) return std::nullopt;
  const Trials& trials = TrialsOf(assignment_id, spec);
  const auto found = trials.find(binary_hash);
  if (found == trials.end() || found->second == spec.trial_id()) {
    return std::nullopt;
  }
  return found->second;
}

void DuplicateIndex::Remember(const std::string& assignment_id,
                              const v1::TrialSpec& spec,
                              const std::string& binary_hash) {
  if (spec.kind() != v1::TRIAL_KIND_CANDIDATE &&
      spec.kind() != v1::TRIAL_KIND_DEFAULT) {
    return;
  }
  TrialsOf(assignment_id, spec).emplace(binary_hash, spec.trial_id());
}

void DuplicateIndex::Forget(const std::string& assignment_id,
                            const v1::TrialSpec& spec,
                            const std::string& binary_hash) {
  Trials& trials = TrialsOf(assignment_id, spec);
  const auto found = trials.find(binary_hash);
  if (found != trials.end() && found->second == spec.trial_id()) {
    trials.erase(found);
  }
}

}  // namespace regatta
