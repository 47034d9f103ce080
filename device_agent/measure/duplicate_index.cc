#include "device_agent/measure/duplicate_index.h"

#include <algorithm>

namespace regatta {

DuplicateIndex::Trials& DuplicateIndex::TrialsOf(const v1::TrialSpec& spec) {
  const Task task(spec.job_id(), spec.task());
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
    const v1::TrialSpec& spec, const std::string& binary_hash) {
  if (spec.kind() != v1::TRIAL_KIND_CANDIDATE) return std::nullopt;
  const Trials& trials = TrialsOf(spec);
  const auto found = trials.find(binary_hash);
  if (found == trials.end() || found->second == spec.trial_id()) {
    return std::nullopt;
  }
  return found->second;
}

void DuplicateIndex::Remember(const v1::TrialSpec& spec,
                              const std::string& binary_hash) {
  if (spec.kind() != v1::TRIAL_KIND_CANDIDATE &&
      spec.kind() != v1::TRIAL_KIND_DEFAULT) {
    return;
  }
  TrialsOf(spec).emplace(binary_hash, spec.trial_id());
}

}  // namespace regatta
