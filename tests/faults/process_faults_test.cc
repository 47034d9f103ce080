// Signals to real daemons in the middle of a job. The times are those of
// fault_fleet.h; what they stand for is in docs/faults.md.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tests/faults/fault_fleet.h"

namespace regatta::faults {
namespace {

using testing::AllGone;
using testing::Process;
using testing::ProcessesBelow;
using testing::WaitFor;

const char kWorkload[] = "matmul(m=64,n=64,k=64)";

// 1
TEST(ProcessFaults, AnIdleAgentThatIsKilledIsBackBeforeItIsLost) {
  FaultFleet fleet({.lost = 60'000, .lease = 60'000});
  const std::string core = UsableCores().front();
  Process& first = fleet.StartAgent("a", core);
  ASSERT_TRUE(fleet.Becomes("a", "presence", "online")) << fleet.Said();
  const std::vector<pid_t> below = ProcessesBelow(first.pid());
  ASSERT_FALSE(below.empty());
  first.Signal(SIGKILL);
  EXPECT_TRUE(AllGone(below, absl::Seconds(2)));
  // At once, not after a second of silence.
  EXPECT_TRUE(fleet.Becomes("a", "presence", "suspect", absl::Seconds(3)));
  fleet.StartAgent("a", core);
  EXPECT_TRUE(WaitFor(absl::Seconds(30), [&] {
    const std::string presence = fleet.Field("a", "presence");
    EXPECT_NE(presence, "lost");
    return presence == "online";
  })) << fleet.Said();
  fleet.Tune(kWorkload, 5);
  fleet.ExpectDone(FaultFleet::Losses::kNone);
}

// 7
TEST(ProcessFaults, AStoppedAgentIsSuspectThenLostAndComesBackWithoutDoubles) {
  const std::vector<std::string> cores = UsableCores();
  if (cores.size() < 2) {
    GTEST_SKIP() << "one processor: a stopped agent keeps its lock";
  }
  FaultFleet fleet;
  Process& a = fleet.StartAgent("a", cores[0]);
  fleet.StartAgent("b", cores[1]);
  ASSERT_TRUE(fleet.Becomes("a", "presence", "online")) << fleet.Said();
  ASSERT_TRUE(fleet.Becomes("b", "presence", "online")) << fleet.Said();
  fleet.Tune(kWorkload, 60);
  ASSERT_TRUE(fleet.AwaitTrials(3)) << fleet.Said();
  ASSERT_TRUE(fleet.Becomes("a", "state", "busy")) << fleet.Said();
  a.Signal(SIGSTOP);
  EXPECT_TRUE(fleet.Becomes("a", "presence", "suspect", absl::Seconds(5)));
  EXPECT_TRUE(fleet.Becomes("a", "presence", "lost", absl::Seconds(6)));
  // The other has the work now.
  const int64_t lost_at = fleet.Trials();
  EXPECT_TRUE(fleet.AwaitTrials(std::min<int64_t>(60, lost_at + 3)));
  a.Signal(SIGCONT);
  EXPECT_TRUE(fleet.Becomes("a", "presence", "online", absl::Seconds(10)));
  fleet.ExpectDone(FaultFleet::Losses::kAllowed);
}

// 22
TEST(ProcessFaults, AnAgentOnABusyMachineIsNeverLost) {
  // A heartbeat that is 2 s late makes it suspect.
  FaultFleet fleet({.suspect = 2300, .lost = 60'000, .lease = 60'000});
  fleet.StartAgent("a", UsableCores().front());
  ASSERT_TRUE(fleet.Becomes("a", "presence", "online")) << fleet.Said();
  std::vector<std::unique_ptr<Process>> busy;
  for (size_t i = 0; i < 4 * UsableCores().size(); ++i) {
    busy.push_back(std::make_unique<Process>(
        std::vector<std::string>{"/bin/sh", "-c", "while :; do :; done"},
        testing::Environment{}));
  }
  std::set<std::string> seen;
  const SteadyTime start = RealClock().Steady();
  while (RealClock().Steady() - start < absl::Seconds(6)) {
    seen.insert(fleet.Field("a", "presence"));
  }
  seen.erase("");  // no answer in time, which is not the agent's
  EXPECT_EQ(seen, std::set<std::string>{"online"});
}

// 39
TEST(ProcessFaults, AStoppedTrackerBlamesNobody) {
  // An agent may take some seconds to come back.
  FaultFleet fleet({.lost = 15'000});
  fleet.StartAgent("a", UsableCores().front());
  ASSERT_TRUE(fleet.Becomes("a", "presence", "online")) << fleet.Said();
  fleet.Tune(kWorkload, 30);
  ASSERT_TRUE(fleet.AwaitTrials(3)) << fleet.Said();
  fleet.tracker().Signal(SIGSTOP);
  // For more than two leases: nothing can be asked meanwhile.
  std::this_thread::sleep_for(std::chrono::seconds(6));
  fleet.tracker().Signal(SIGCONT);
  EXPECT_TRUE(WaitFor(absl::Seconds(10), [&] {
    const std::string presence = fleet.Field("a", "presence");
    EXPECT_NE(presence, "lost");
    return presence == "online";
  }));
  fleet.ExpectDone(FaultFleet::Losses::kNone);
}

// 47: found by the check that comes by itself, not by a start.
TEST(ProcessFaults, ADamagedLogTakesNothingMoreUntilABackupIsRestored) {
  FaultFleet fleet({.lost = 60'000, .lease = 60'000},
                   {"--check-log-hours", "0.0003"});  // a second
  testing::Daemons& daemons = fleet.daemons();
  Process& board = fleet.StartAgent("a", UsableCores().front());
  ASSERT_TRUE(fleet.Becomes("a", "presence", "online")) << fleet.Said();
  fleet.Tune(kWorkload, 25);
  ASSERT_TRUE(fleet.AwaitTrials(5)) << fleet.Said();
  // Nothing comes from here on; a stop moves all that came into the file.
  board.Signal(SIGSTOP);
  ASSERT_EQ(daemons.Stop("server"), "");
  daemons.Start("server");
  ASSERT_TRUE(daemons.Ready()) << fleet.Said();
  const std::string backup = daemons.StateOf("server") + "/backup";
  ASSERT_EQ(fleet.Run({"log", "backup", backup}).exit_code, 0);
  std::string bytes = testing::ReadFile(daemons.log());
  constexpr size_t kPageBytes = 4096;
  ASSERT_GT(bytes.size(), 4 * kPageBytes);
  {
    // One bit of how many cells the third page has, under the server's hands.
    std::fstream file(daemons.log(),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(2 * kPageBytes + 3);
    file.put(static_cast<char>(bytes[2 * kPageBytes + 3] ^ 4));
  }
  ASSERT_TRUE(WaitFor(absl::Seconds(20), [&] {
    return daemons.Said("server").find("the tuning log is damaged") !=
           std::string::npos;
  })) << fleet.Said();
  // Boards keep what they find out.
  board.Signal(SIGCONT);
  EXPECT_TRUE(WaitFor(absl::Seconds(30), [&] {
    return fleet.Job().dump().find("the tuning log is damaged") !=
           std::string::npos;
  })) << fleet.Job();
  EXPECT_NE(fleet.Run({"log", "check"}).exit_code, 0);
  // The steps of the operator's guide.
  ASSERT_EQ(daemons.Stop("server"), "");
  const testing::ProcessResult restored =
      fleet.Run({"log", "restore", backup, "--log", daemons.log(), "--force"});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  daemons.Start("server");
  ASSERT_TRUE(daemons.Ready()) << fleet.Said();
  fleet.ExpectDone(FaultFleet::Losses::kAllowed);
}

// 61
TEST(ProcessFaults, OneSigtermDrainsAndASecondStops) {
  FaultFleet fleet;
  const std::string core = UsableCores().front();
  Process& first = fleet.StartAgent("a", core);
  ASSERT_TRUE(fleet.Becomes("a", "presence", "online")) << fleet.Said();
  fleet.Tune(kWorkload, 30);
  ASSERT_TRUE(fleet.AwaitTrials(3)) << fleet.Said();
  std::vector<pid_t> below = ProcessesBelow(first.pid());
  first.Signal(SIGTERM);
  const testing::ProcessResult drained = first.Wait(absl::Seconds(62));
  EXPECT_EQ(drained.exit_code, 0) << drained.err;
  EXPECT_TRUE(AllGone(below, absl::Seconds(2)));
  Process& second = fleet.StartAgent("a", core);
  const int64_t before = fleet.Trials();
  ASSERT_TRUE(fleet.AwaitTrials(before + 3)) << fleet.Said();
  below = ProcessesBelow(second.pid());
  const SteadyTime asked = RealClock().Steady();
  second.Signal(SIGTERM);
  second.Signal(SIGINT);
  EXPECT_EQ(second.Wait(absl::Seconds(10)).exit_code, 0);
  EXPECT_LE(RealClock().Steady() - asked, absl::Seconds(2.5));
  EXPECT_TRUE(AllGone(below, absl::Seconds(2)));
  fleet.StartAgent("a", core);
  fleet.ExpectDone(FaultFleet::Losses::kNone);
}

}  // namespace
}  // namespace regatta::faults
