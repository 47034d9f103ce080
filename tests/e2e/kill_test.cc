// SIGKILL of each daemon in mid-job: the job ends and every trial is recorded
// exactly once.
#include <gtest/gtest.h>
#include <signal.h>

#include "absl/strings/str_cat.h"
#include "tests/e2e/fleet.h"
#include "tests/support/fleet_checks.h"

namespace regatta::testing {
namespace {

const char kWorkload[] = "matmul(m=128,n=128,k=128)";

class Kill : public ::testing::TestWithParam<const char*> {};

TEST_P(Kill, InMidJobLosesAndDoublesNothing) {
  const int trials = static_cast<int>(60 * TestScale());
  std::cout << "trials: " << trials << " (REGATTA_TEST_SCALE=" << TestScale()
            << ")\n";
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  auto tune = fleet.Start({"tune", kWorkload, "--trials", absl::StrCat(trials),
                           "--seed", "3", "--json"});
  // The job is under way: some of its trials are recorded, not all.
  ASSERT_TRUE(WaitFor(absl::Seconds(60), [&] {
    return fleet.TrialsOf(1) >= 10;
  })) << fleet.Logs();
  const pid_t victim = fleet.DaemonPid(GetParam());
  ASSERT_GT(victim, 0);
  const std::vector<pid_t> below = ProcessesBelow(victim);
  ASSERT_EQ(kill(victim, SIGKILL), 0);
  EXPECT_TRUE(AllGone(below, absl::Seconds(2))) << "a worker outlived it";

  const ProcessResult result = tune->Wait(absl::Seconds(200));
  ASSERT_EQ(result.exit_code, 0) << result.err << fleet.Logs();
  const Json job = Json::parse(result.out);
  EXPECT_EQ(job["state"], "done");
  EXPECT_EQ(job["tasks"][0]["trials"], trials);
  EXPECT_NE(fleet.DaemonPid(GetParam()), victim);

  const Json records = fleet.Document({"records", kWorkload})["records"];
  EXPECT_EQ(ExpectEachTrialOnce(records), trials);
  fleet.Stop();
  ExpectAcknowledgedAreRecorded(fleet.dir() + "/agent", records);
}

INSTANTIATE_TEST_SUITE_P(EachDaemon, Kill,
                         ::testing::Values("server", "tracker", "agent"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

TEST(Killed, UpTakesItsDaemonsAlong) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  const std::string dir = fleet.dir();
  ASSERT_FALSE(ProcessesWith(dir).empty());
  fleet.up().Signal(SIGKILL);
  EXPECT_TRUE(
      WaitFor(absl::Seconds(10), [&] { return ProcessesWith(dir).empty(); }))
      << ProcessesWith(dir).size() << " processes left";
}

}  // namespace
}  // namespace regatta::testing
