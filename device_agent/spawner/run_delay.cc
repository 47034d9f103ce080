#include "device_agent/spawner/run_delay.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "device_agent/spawner/file_text.h"

namespace regatta {

int64_t RunDelayNs(pid_t pid, const std::string& proc) {
  int64_t longest = 0;
  std::error_code error;
  const std::string tasks = absl::StrCat(proc, "/", pid, "/task");
  for (auto it = std::filesystem::directory_iterator(tasks, error);
       !error && it != std::filesystem::directory_iterator();
       it.increment(error)) {
    // Time on a processor, time waiting for one, turns.
    const std::vector<std::string> fields =
        absl::StrSplit(FileText(it->path().string() + "/schedstat"), ' ');
    int64_t waited = 0;
    if (fields.size() >= 2 && absl::SimpleAtoi(fields[1], &waited)) {
      longest = std::max(longest, waited);
    }
  }
  return longest;
}

PatientLimit::PatientLimit(pid_t pid, absl::Duration limit, SteadyTime now)
    : pid_(pid),
      limit_(limit),
      before_ns_(RunDelayNs(pid)),
      started_(now),
      deadline_(now + limit) {}

PatientLimit::State PatientLimit::Check(SteadyTime now) {
  if (now < deadline_) return State::kWithin;
  starved_ns_ = std::max<int64_t>(0, RunDelayNs(pid_) - before_ns_);
  const SteadyTime had_its_time =
      started_ + (limit_ + absl::Nanoseconds(starved_ns_));
  if (now >= had_its_time) return State::kReached;
  const SteadyTime latest = started_ + kFactor * limit_;
  if (now >= latest) return State::kStarved;
  deadline_ = std::min(had_its_time, latest);
  return State::kWithin;
}

}  // namespace regatta
