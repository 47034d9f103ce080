// Three agents on one machine: one job uses all of them, and what the records
// say of the timed runs shows that none disturbed another.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

const char kWorkload[] = "matmul(m=64,n=64,k=64)";

struct AgentSetup {
  std::string cores;         // as --cores
  std::string device_class;  // "": the agent's own
};

std::vector<int> UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

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

// Server and tracker, and agents of the test's own.
class Agents : public ::testing::Test {
 protected:
  Agents() : fleet_({"--no-agent"}) {}

  // Three agents that the server knows.
  void StartAgents(const std::vector<AgentSetup>& setups) {
    ASSERT_TRUE(WaitFor(absl::Seconds(20), [&] {
      return !fleet_.server().empty();
    })) << fleet_.Logs();
    const std::string tracker = fleet_.tracker();
    for (size_t i = 0; i < setups.size(); ++i) {
      std::vector<std::string> argv = {Program("regatta-agent"),
                                       "--tracker",
                                       tracker,
                                       "--id",
                                       absl::StrCat("board-", i),
                                       "--cores",
                                       setups[i].cores,
                                       "--state",
                                       absl::StrCat(state_.path(), "/", i)};
      if (!setups[i].device_class.empty()) {
        argv.insert(argv.end(), {"--device-class", setups[i].device_class});
      }
      agents_.push_back(std::make_unique<Process>(argv, Environment{}));
    }
    ASSERT_TRUE(WaitFor(
        absl::Seconds(40),
        [&] {
          const ProcessResult result = fleet_.Run({"devices", "--json"});
          if (result.exit_code != 0) return false;
          const Json devices = Json::parse(result.out)["devices"];
          return devices.size() == setups.size() &&
                 std::all_of(devices.begin(), devices.end(), [](const Json& d) {
                   return d["health"] != "probing";
                 });
        }))
        << fleet_.Run({"devices"}).out << fleet_.Logs();
  }

  ~Agents() override {
    for (const auto& agent : agents_) agent->Signal(SIGTERM);
    for (const auto& agent : agents_) {
      EXPECT_EQ(agent->Wait(absl::Seconds(10)).exit_code, 0);
    }
  }

  Fleet fleet_;
  TempDir state_;
  std::vector<std::unique_ptr<Process>> agents_;
};

struct Run {
  std::string device, boot, trial;
  std::set<int> cpus;
  int64_t start = 0, end = 0;
  bool interleaved = false;
};

std::vector<Run> TimedRuns(const Json& records) {
  std::vector<Run> runs;
  for (const Json& record : records) {
    if (record["timed_start_boot_ns"].is_null()) continue;
    Run run;
    run.device = record["device"];
    run.boot = record["boot_id"];
    run.trial = record["trial"];
    run.cpus = Cpus(record["cpu_list"]);
    run.start = record["timed_start_boot_ns"];
    run.end = record["timed_end_boot_ns"];
    run.interleaved = record["kind"] == "confirm" || record["kind"] == "race";
    EXPECT_LT(run.start, run.end) << record;
    runs.push_back(std::move(run));
  }
  return runs;
}

bool ShareCores(const Run& a, const Run& b) {
  return a.boot == b.boot &&
         std::any_of(a.cpus.begin(), a.cpus.end(),
                     [&](int cpu) { return b.cpus.contains(cpu); });
}

// Each device that did trials, with how many; a failure for every two runs that
// overlap on a core and are not trials of one interleaved run.
std::map<std::string, int> CheckRuns(const std::vector<Run>& runs) {
  std::map<std::string, int> trials;
  int pairs = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    ++trials[runs[i].device];
    for (size_t j = 0; j < i; ++j) {
      const Run &a = runs[i], &b = runs[j];
      if (!ShareCores(a, b)) continue;
      if (a.device == b.device && a.interleaved && b.interleaved) continue;
      ++pairs;
      EXPECT_TRUE(a.end <= b.start || b.end <= a.start)
          << a.trial << " on " << a.device << " " << a.start << "-" << a.end
          << " overlaps " << b.trial << " on " << b.device << " " << b.start
          << "-" << b.end;
    }
  }
  EXPECT_GT(pairs, 0) << "nothing was compared";
  return trials;
}

int TrialsWanted() { return static_cast<int>(45 * TestScale()); }

TEST_F(Agents, OfOneClassOnSharedCoresTakeTurns) {
  const int cpu = UsableCpus().back();
  const std::string cores = absl::StrCat(cpu);
  StartAgents({{cores, "shared"}, {cores, "shared"}, {cores, "shared"}});
  const int trials = TrialsWanted();
  std::cout << "trials: " << trials << " (REGATTA_TEST_SCALE=" << TestScale()
            << ")\n";
  const Json job = fleet_.Document(
      {"tune", kWorkload, "--trials", absl::StrCat(trials), "--seed", "5"},
      absl::Seconds(240));
  EXPECT_EQ(job["state"], "done");
  EXPECT_EQ(job["tasks"][0]["trials"], trials);
  const std::map<std::string, int> done =
      CheckRuns(TimedRuns(fleet_.Document({"records", kWorkload})["records"]));
  EXPECT_EQ(done.size(), 3) << "an agent did nothing";
}

TEST_F(Agents, OfOneClassOnDisjointCoresAllWork) {
  const std::vector<int> cpus = UsableCpus();
  if (cpus.size() < 2) GTEST_SKIP() << "needs two processors";
  // Two have a core each, disjoint; the third shares both with them.
  StartAgents({{absl::StrCat(cpus[0]), "mixed"},
               {absl::StrCat(cpus[1]), "mixed"},
               {cpus.size() > 2 ? absl::StrCat(cpus[2])
                                : absl::StrCat(cpus[0], ",", cpus[1]),
                "mixed"}});
  const int trials = TrialsWanted();
  const Json job = fleet_.Document(
      {"tune", kWorkload, "--trials", absl::StrCat(trials), "--seed", "6"},
      absl::Seconds(240));
  EXPECT_EQ(job["state"], "done");
  const std::map<std::string, int> done =
      CheckRuns(TimedRuns(fleet_.Document({"records", kWorkload})["records"]));
  EXPECT_EQ(done.size(), 3) << "an agent did nothing";
}

TEST_F(Agents, OfThreeClassesServeOneJob) {
  const std::vector<int> cpus = UsableCpus();
  const std::string first = absl::StrCat(cpus.front());
  const std::string last = absl::StrCat(cpus.back());
  StartAgents({{last, "one"}, {last, "two"}, {first, "three"}});
  const Json job = fleet_.Document(
      {"tune", kWorkload, "--trials", absl::StrCat(TrialsWanted() / 3),
       "--seed", "7", "--device-class", "one", "--device-class", "two",
       "--device-class", "three"},
      absl::Seconds(240));
  EXPECT_EQ(job["state"], "done");
  ASSERT_EQ(job["tasks"].size(), 3);
  for (const Json& task : job["tasks"]) {
    EXPECT_EQ(task["trials"], TrialsWanted() / 3);
  }
  const std::map<std::string, int> done =
      CheckRuns(TimedRuns(fleet_.Document({"records", kWorkload})["records"]));
  EXPECT_EQ(done.size(), 3) << "an agent did nothing";
}

}  // namespace
}  // namespace regatta::testing
