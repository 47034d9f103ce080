// What records say of timed runs: that none disturbed another.
#ifndef REGATTA_TESTS_SUPPORT_TIMED_RUNS_H_
#define REGATTA_TESTS_SUPPORT_TIMED_RUNS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace regatta::testing {

struct TimedRun {
  std::string device, boot, trial;
  std::set<int> cpus;
  int64_t start_ns = 0, end_ns = 0;  // on the clock of that boot
  bool interleaved = false;
};

// Of the documents of `regatta records --json` that were timed.
std::vector<TimedRun> TimedRuns(const nlohmann::json& records);

struct RunPairs {
  int compared = 0;  // pairs that share a processor
  // One line for each that overlaps, or that ends before it starts.
  std::vector<std::string> wrong;
};
// Trials of one interleaved run take turns and are not compared.
RunPairs CompareRuns(const std::vector<TimedRun>& runs);

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SUPPORT_TIMED_RUNS_H_
