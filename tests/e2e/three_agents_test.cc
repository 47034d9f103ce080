// Three agents on one machine: one job uses all of them, and what the records
// say of the timed runs shows that none disturbed another.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/e2e/fleet.h"
#include "tests/support/timed_runs.h"

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

// Each device that did trials, with how many; a failure for every two runs that
// overlap on a core and are not trials of one interleaved run.
std::map<std::string, int> CheckRuns(const std::vector<TimedRun>& runs) {
  std::map<std::string, int> trials;
  for (const TimedRun& run : runs) ++trials[run.device];
  const RunPairs pairs = CompareRuns(runs);
  EXPECT_TRUE(pairs.wrong.empty()) << absl::StrJoin(pairs.wrong, "\n");
  EXPECT_GT(pairs.compared, 0) << "nothing was compared";
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
