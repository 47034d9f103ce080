// SIGKILL of processes at random moments in one job: it ends in time, every
// trial is recorded exactly once, and best-known is what the records give.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "tests/e2e/fleet.h"
#include "tests/support/fleet_checks.h"

namespace regatta::testing {
namespace {

const char kWorkload[] = "matmul(m=128,n=128,k=128)";

struct Storm {
  const char* name;
  std::vector<std::string> victims;
};

// At REGATTA_TEST_SCALE=5: 500 trials and 20 kills.
int Trials() { return static_cast<int>(100 * TestScale()); }
int Kills() { return static_cast<int>(4 * TestScale()); }
uint64_t Seed() {
  const char* seed = std::getenv("REGATTA_TEST_SEED");
  return seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
}

// A process of the fleet by name, now; -1: not there.
pid_t Find(const Fleet& fleet, const std::string& name) {
  const bool daemon = name == "server" || name == "tracker" || name == "agent";
  if (daemon) return fleet.DaemonPid(name);
  pid_t parent = fleet.DaemonPid("agent");
  for (const std::string& child : {std::string("regatta-spawner"), name}) {
    if (parent < 0) return -1;
    const std::vector<pid_t> pids = ChildrenOf(parent, child);
    parent = pids.empty() ? -1 : pids.front();
    if (child == name) break;
  }
  return parent;
}

// When to kill: some time after so many trials of the job.
struct Moment {
  int64_t trials = 0;
  absl::Duration later;
};

// The time that the job takes. Kills one process at each of `moments`, which
// are in order.
absl::Duration RunJob(const Fleet& fleet, const std::vector<Moment>& moments,
                      const std::vector<std::string>& victims, Random& random,
                      absl::Duration limit, int* killed) {
  const SteadyTime start = RealClock().Steady();
  auto tune = fleet.Start({"tune", kWorkload, "--trials",
                           absl::StrCat(Trials()), "--seed", "11", "--json"});
  for (const Moment& moment : moments) {
    const auto ended = [&] { return !tune->Running(); };
    WaitFor(limit,
            [&] { return ended() || fleet.TrialsOf(1) >= moment.trials; });
    WaitFor(moment.later, ended);
    if (ended()) break;
    const std::string& victim = victims[random.Below(victims.size())];
    // One that was just killed is killed again as soon as it is back; one that
    // ends by itself, the next time that it is there.
    bool hit = false;
    WaitFor(absl::Seconds(10), [&] {
      const pid_t pid = Find(fleet, victim);
      hit = pid > 0 && kill(pid, SIGKILL) == 0;
      return hit || ended();
    });
    *killed += hit ? 1 : 0;
    std::cout << absl::FormatDuration(RealClock().Steady() - start) << " "
              << victim << (hit ? "" : " (not there)") << "\n";
  }
  const ProcessResult result =
      tune->Wait(limit - (RealClock().Steady() - start));
  const absl::Duration took = RealClock().Steady() - start;
  EXPECT_EQ(result.exit_code, 0) << result.err << fleet.Logs();
  const Json job = Json::parse(result.out, nullptr, false);
  EXPECT_FALSE(job.is_discarded()) << result.out;
  if (job.is_discarded()) return took;
  EXPECT_EQ(job["state"], "done") << job;
  EXPECT_EQ(job["tasks"][0]["trials"], Trials());
  return took;
}

void ExpectBestKnownIsWhatRecordsGive(const Fleet& fleet) {
  const Json stored = fleet.Document({"best", kWorkload});
  EXPECT_EQ(fleet.Document({"log", "rebuild"})["changed"], 0);
  const Json rebuilt = fleet.Document({"best", kWorkload});
  for (const char* field : {"grade", "schedule", "time_ns", "interval_ns",
                            "samples", "boards", "binary_hash"}) {
    if (!stored.contains(field)) continue;
    EXPECT_EQ(stored[field], rebuilt[field]) << field;
  }
  fleet.Document({"log", "check"});
}

class KillStorm : public ::testing::TestWithParam<Storm> {};

TEST_P(KillStorm, LosesAndDoublesNothingAndEndsInTime) {
  Random random(Seed());
  std::cout << "trials: " << Trials() << ", kills: " << Kills()
            << " (REGATTA_TEST_SCALE=" << TestScale()
            << "; 5: 500 trials, 20 kills), REGATTA_TEST_SEED=" << Seed()
            << "\n";
  int killed = 0;
  absl::Duration calm;
  {
    Fleet fleet;
    ASSERT_TRUE(fleet.Ready());
    calm = RunJob(fleet, {}, {}, random, absl::Minutes(20), &killed);
  }
  const absl::Duration limit = 2 * calm + absl::Minutes(1);
  // By progress, not by the clock: a job that is faster this time would end
  // before its kills. The last quarter and the finals are left to recover in.
  std::vector<Moment> moments;
  for (int i = 0; i < Kills(); ++i) {
    moments.push_back(
        {static_cast<int64_t>(random.Below(Trials() * 3 / 4)),
         absl::Milliseconds(static_cast<int64_t>(random.Below(300)))});
  }
  std::sort(
      moments.begin(), moments.end(),
      [](const Moment& a, const Moment& b) { return a.trials < b.trials; });
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  const absl::Duration disturbed =
      RunJob(fleet, moments, GetParam().victims, random, limit, &killed);
  std::cout << "undisturbed " << absl::FormatDuration(calm) << ", with "
            << killed << " kills " << absl::FormatDuration(disturbed)
            << ", limit " << absl::FormatDuration(limit) << "\n";
  EXPECT_LE(disturbed, limit);
  // One may come too late when the job is short.
  EXPECT_GE(killed, Kills() - 1);
  EXPECT_GT(killed, 0);
  const Json records = fleet.Document({"records", kWorkload})["records"];
  EXPECT_EQ(ExpectEachTrialOnce(records), Trials());
  ExpectBestKnownIsWhatRecordsGive(fleet);
  fleet.Stop();
  ExpectAcknowledgedAreRecorded(fleet.dir() + "/agent", records);
}

INSTANTIATE_TEST_SUITE_P(
    Seeded, KillStorm,
    ::testing::Values(Storm{"daemons", {"server", "tracker", "agent"}},
                      Storm{"workers",
                            {"regatta-spawner", "regatta-build-worker",
                             "regatta-run-worker"}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace regatta::testing
