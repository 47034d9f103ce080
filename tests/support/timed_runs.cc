#include "tests/support/timed_runs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace regatta::testing {
namespace {

// Lists with ranges, as `cpu_list` of a record.
std::set<int> Cpus(const std::string& list) {
  std::set<int> cpus;
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(list, ','))) {
    const size_t dash = part.find('-');
    const int first = std::stoi(part);
    const int last =
        dash == std::string::npos ? first : std::stoi(part.substr(dash + 1));
    for (int cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

bool ShareCores(const TimedRun& a, const TimedRun& b) {
  return a.boot == b.boot &&
         std::any_of(a.cpus.begin(), a.cpus.end(),
                     [&](int cpu) { return b.cpus.contains(cpu); });
}

}  // namespace

std::vector<TimedRun> TimedRuns(const nlohmann::json& records) {
  std::vector<TimedRun> runs;
  for (const nlohmann::json& record : records) {
    if (record["timed_start_boot_ns"].is_null()) continue;
    TimedRun run;
    run.device = record["device"];
    run.boot = record["boot_id"];
    run.trial = record["trial"];
    run.cpus = Cpus(record["cpu_list"]);
    run.start_ns = record["timed_start_boot_ns"];
    run.end_ns = record["timed_end_boot_ns"];
    run.interleaved = record["kind"] == "confirm" || record["kind"] == "race";
    runs.push_back(std::move(run));
  }
  return runs;
}

RunPairs CompareRuns(const std::vector<TimedRun>& runs) {
  RunPairs pairs;
  for (size_t i = 0; i < runs.size(); ++i) {
    const TimedRun& a = runs[i];
    if (a.start_ns >= a.end_ns) {
      pairs.wrong.push_back(absl::StrCat(a.trial, " ends before it starts"));
    }
    for (size_t j = 0; j < i; ++j) {
      const TimedRun& b = runs[j];
      if (!ShareCores(a, b)) continue;
      if (a.device == b.device && a.interleaved && b.interleaved) continue;
      ++pairs.compared;
      if (a.end_ns <= b.start_ns || b.end_ns <= a.start_ns) continue;
      pairs.wrong.push_back(
          absl::StrCat(a.trial, " on ", a.device, " ", a.start_ns, "-",
                       a.end_ns, " overlaps ", b.trial, " on ", b.device, " ",
                       b.start_ns, "-", b.end_ns));
    }
  }
  return pairs;
}

}  // namespace regatta::testing
