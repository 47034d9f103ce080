#include "tests/chaos/checker.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/outcome_names.h"
#include "tests/chaos/questions.h"
#include "tests/support/timed_runs.h"

namespace regatta::testing {
namespace {

constexpr absl::Duration kAnswerLimit = absl::Seconds(60);
constexpr absl::Duration kGoneLimit = absl::Seconds(2);
constexpr size_t kMostLines = 5;

class Checker {
 public:
  Checker(const Cluster& cluster, Findings* findings)
      : cluster_(cluster), findings_(*findings) {}

  void Check(const std::vector<AskedJob>& jobs) {
    for (const AskedJob& job : jobs) CheckJob(job);
    CheckAcknowledged();
    const RunPairs pairs = CompareRuns(runs_);
    findings_.pairs_compared = pairs.compared;
    for (const std::string& line : pairs.wrong) Broken("no overlap", line);
    if (const auto rebuilt = Ask({"log", "rebuild"})) {
      if ((*rebuilt)["changed"] != 0) {
        Broken("best known", absl::StrCat("a rebuild changed ",
                                          (*rebuilt)["changed"].dump()));
      }
    }
    Ask({"log", "check"});
  }

 private:
  void Broken(const std::string& invariant, const std::string& what) {
    int& lines = lines_[invariant];
    if (++lines > static_cast<int>(kMostLines)) return;
    findings_.broken.push_back(absl::StrCat(invariant, ": ", what));
  }
  std::optional<Json> Ask(const std::vector<std::string>& arguments) {
    std::string why;
    std::optional<Json> document =
        AskNow(cluster_, arguments, kAnswerLimit, &why);
    if (!document.has_value()) {
      Broken(
          arguments[0] == "log" ? "log sound" : "answers",
          absl::StrCat("regatta ", absl::StrJoin(arguments, " "), ": ", why));
    }
    return document;
  }

  void CheckJob(const AskedJob& asked) {
    const auto job = Ask({"jobs", absl::StrCat(asked.job)});
    if (!job.has_value()) return;
    const int64_t counted = (*job)["tasks"][0]["trials"];
    if ((*job)["state"] != "done" || counted != asked.trials) {
      Broken("job ended",
             absl::StrCat("job ", asked.job, " is ", (*job)["state"].dump(),
                          " with ", counted, " of ", asked.trials,
                          " trials: ", (*job)["reason"].dump()));
    }
    const auto document = Ask({"records", asked.workload});
    if (!document.has_value()) return;
    const Json& records = (*document)["records"];
    std::set<std::string> schedules;
    int64_t candidates = 0;
    for (const Json& record : records) {
      const std::string trial = record["trial"], outcome = record["outcome"];
      ++findings_.records;
      ++findings_.outcomes[outcome];
      if (!trials_.insert(trial).second) {
        Broken("one outcome",
               absl::StrCat("trial ", trial, " has two records"));
      }
      const std::optional<v1::Outcome> known = ParseOutcome(outcome);
      if (!known.has_value()) {
        Broken("one outcome", absl::StrCat("trial ", trial, " is ", outcome));
        continue;
      }
      if (record["kind"] != "candidate" || record["job"] != asked.job ||
          !IsCandidateOutcome(*known)) {
        continue;
      }
      ++candidates;
      if (!schedules.insert(record["schedule"]).second) {
        Broken("one outcome",
               absl::StrCat("schedule of ", trial, " was counted twice"));
      }
    }
    if (candidates != asked.trials) {
      Broken("one outcome",
             absl::StrCat("job ", asked.job, " has ", candidates,
                          " candidates in the log, not ", asked.trials));
    }
    const std::vector<TimedRun> runs = TimedRuns(records);
    runs_.insert(runs_.end(), runs.begin(), runs.end());
  }

  void CheckAcknowledged() {
    const std::set<std::string> stored = cluster_.acks().stored();
    findings_.acknowledged = static_cast<int64_t>(stored.size());
    for (const std::string& trial : stored) {
      if (!trials_.contains(trial)) {
        Broken("acknowledged", absl::StrCat("trial ", trial,
                                            " was stored, says the tracker, "
                                            "and is not in the log"));
      }
    }
    if (cluster_.acks().unread() > 0) {
      Broken("acknowledged", "messages of the tracker could not be read");
    }
  }

  const Cluster& cluster_;
  Findings& findings_;
  std::map<std::string, int> lines_;
  std::set<std::string> trials_;
  std::vector<TimedRun> runs_;
};

}  // namespace

Findings CheckFleet(const Cluster& cluster, const std::vector<AskedJob>& jobs) {
  Findings findings;
  Checker(cluster, &findings).Check(jobs);
  return findings;
}

void CheckEnd(Cluster* cluster, Findings* findings) {
  for (const std::string& line : cluster->Stop()) {
    findings->broken.push_back("stops: " + line);
  }
  if (!WaitFor(kGoneLimit, [&] { return cluster->Left().empty(); })) {
    for (const pid_t pid : cluster->Left()) {
      std::string command = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
      std::replace(command.begin(), command.end(), '\0', ' ');
      findings->broken.push_back(
          absl::StrCat("nothing left: process ", pid, ", ", command));
    }
  }
}

}  // namespace regatta::testing
