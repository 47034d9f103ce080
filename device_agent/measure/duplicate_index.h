// Which code was tried before, by server, job, task and device: a schedule that
// gives the same bytes as an earlier one need not be timed again.
//
// Not thread-safe: one per timing thread.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_DUPLICATE_INDEX_H_
#define REGATTA_DEVICE_AGENT_MEASURE_DUPLICATE_INDEX_H_

#include <list>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "regatta/v1/trial.pb.h"

namespace regatta {

class DuplicateIndex {
 public:
  // Tasks remembered; the longest unused is forgotten first.
  static constexpr size_t kTasks = 64;

  // The trial of the same task that had this code first. Absent when there was
  // none, when it was this same trial (a lease came back), and for anything but
  // candidates, which are measured again on purpose.
  // Assignments are named "SERVER/WORK": each server counts its jobs from 1.
  std::optional<std::string> EarlierTrial(const std::string& assignment_id,
                                          const v1::TrialSpec& spec,
                                          const std::string& binary_hash);
  // To be called once a default or a candidate has a candidate outcome.
  void Remember(const std::string& assignment_id, const v1::TrialSpec& spec,
                const std::string& binary_hash);
  // The trial says nothing after all: its code is to be timed again.
  void Forget(const std::string& assignment_id, const v1::TrialSpec& spec,
              const std::string& binary_hash);

 private:
  // Server, job, task and what is measured (threads, cache).
  using Task = std::tuple<std::string, int64_t, int32_t, int32_t, int32_t>;
  using Trials = std::map<std::string, std::string>;  // hash to trial
  Trials& TrialsOf(const std::string& assignment_id, const v1::TrialSpec& spec);

  std::list<std::pair<Task, Trials>> tasks_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_DUPLICATE_INDEX_H_
