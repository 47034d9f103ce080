// What people are told: why work waits, and what the boards do.
#include "tests/tracker/core_fixture.h"
#include "tracker/wait_reason.h"

namespace regatta {
namespace {

using ReportTest = CoreTest;

int CountWaitReports(const ServerInbox& inbox) {
  int count = 0;
  for (const auto& event : inbox.events) count += event.has_wait_report();
  return count;
}

TEST_F(ReportTest, NoBoardOfTheClass) {
  const StreamId server = Attach();
  Submit(server, {MakeWork(7, 0)});
  Wait(absl::Seconds(1));
  EXPECT_EQ(WaitReason(server), "no znver4-2c board is registered");
  EXPECT_EQ(LastWaits(server)->jobs(0).job_id(), 7);
  EXPECT_EQ(LastWaits(server)->jobs(0).device_class(), kClass);
  EXPECT_EQ(LastWaits(server)->jobs(0).queued(), 1);
}

TEST_F(ReportTest, NoBoardOnline) {
  Disconnect(ConnectBoard("1"));
  Wait(absl::Minutes(3) + absl::Seconds(5));
  const StreamId server = Attach();
  Submit(server, {MakeWork(7, 0)});
  Wait(absl::Seconds(1));
  EXPECT_EQ(WaitReason(server),
            "no znver4-2c board is online; 1 lost for 3 min");
}

TEST_F(ReportTest, AllBoardsBusy) {
  const StreamId server = Attach();
  ConnectBoard("1");
  ConnectBoard("2");
  Submit(server, {MakeWork(7, 0), MakeWork(7, 1), MakeWork(7, 2)});
  Wait(absl::Seconds(1));
  EXPECT_EQ(WaitReason(server), "2 of 2 znver4-2c boards busy");
}

TEST_F(ReportTest, AnotherCompilerOrSpace) {
  const StreamId server = Attach();
  v1::Hello hello = MakeHello("a1", {MakeDevice("d1")});
  hello.set_compiler_version("c9");
  Connect(hello);
  Submit(server, {MakeWork(7, 0)});
  Wait(absl::Seconds(1));
  EXPECT_EQ(WaitReason(server),
            "1 znver4-2c board has compiler c9, the job needs c1");
  hello = MakeHello("a1", {MakeDevice("d1")});
  hello.set_space_version(4);
  Connect(hello);
  Wait(absl::Seconds(1));
  EXPECT_EQ(WaitReason(server),
            "1 znver4-2c board has space cpu version 4, the job needs cpu "
            "version 1");
}

TEST_F(ReportTest, ABoardThatTakesNoWorkYet) {
  const StreamId server = Attach();
  v1::DeviceInfo device = MakeDevice("d1", /*credit=*/0);
  device.set_health("probing");
  Connect(MakeHello("a1", {device}));
  Submit(server, {MakeWork(7, 0)});
  Wait(absl::Seconds(1));
  EXPECT_EQ(WaitReason(server), "board d1 takes no work now: probing");
}

TEST_F(ReportTest, ABoardThatDrainsIsGivenNothingUntilItTakesWorkAgain) {
  const StreamId server = Attach();
  v1::DeviceInfo device = MakeDevice("d1");
  device.set_health("draining: the result spool cannot be written: full");
  const SessionId board = Connect(MakeHello("a1", {device}));
  Submit(server, {MakeWork(7, 0)});
  Wait(absl::Seconds(1));
  EXPECT_TRUE(Assigned(board).empty());
  EXPECT_EQ(WaitReason(server),
            "board d1 takes no work now: draining: the result spool cannot be "
            "written: full");
  v1::AgentMessage message;
  device.set_health("ok");
  *message.mutable_device_update()->add_devices() = device;
  Say(board, message);
  EXPECT_EQ(Assigned(board).size(), 1u);
}

TEST_F(ReportTest, ABoardThatTimesARunIsBusy) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1", /*credit=*/3);
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment assignment = OneAssigned(board);
  Accept(board, assignment);
  Beat(board, {assignment.assignment_id()}, 1, /*quiet_ms=*/20'000);
  Submit(server, {MakeWork(7, 1)});
  Wait(absl::Seconds(2));
  EXPECT_TRUE(Assigned(board).empty());
  EXPECT_EQ(WaitReason(server), "1 of 1 znver4-2c board busy");
}

TEST_F(ReportTest, ABoardThatGaveWorkBackRests) {
  options_.cool_down = absl::Seconds(10);
  Reconfigure();
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment assignment = OneAssigned(board);
  Accept(board, assignment);
  v1::AgentMessage message;
  v1::Release* release = message.mutable_release();
  release->set_assignment_id(assignment.assignment_id());
  release->set_lease_epoch(assignment.lease_epoch());
  Say(board, message);
  Wait(absl::Seconds(2));
  EXPECT_TRUE(Assigned(board).empty());
  EXPECT_EQ(WaitReason(server),
            "board d1 rests a moment after work that it gave back");
  Wait(absl::Seconds(9));
  EXPECT_EQ(Assigned(board).size(), 1u);
}

TEST_F(ReportTest, AReportComesOnChangeOnlyAndAtMostOnceASecond) {
  const StreamId server = Attach();
  Submit(server, {MakeWork(7, 0)});
  Wait(absl::Seconds(10));
  EXPECT_EQ(CountWaitReports(servers_[server]), 1);
  for (int i = 1; i < 30; ++i) {
    Submit(server, {MakeWork(7, i)});
    clock_.Advance(absl::Milliseconds(100));
    core_->Tick();
    Drain();
  }
  EXPECT_LE(CountWaitReports(servers_[server]), 5);
  EXPECT_GE(CountWaitReports(servers_[server]), 3);
}

TEST_F(ReportTest, AnEmptyReportSaysThatNothingWaitsAnyMore) {
  const StreamId server = Attach();
  Submit(server, {MakeWork(7, 0)});
  Wait(absl::Seconds(1));
  ConnectBoard("1");
  Wait(absl::Seconds(1));
  EXPECT_EQ(LastWaits(server)->jobs_size(), 0);
}

TEST_F(ReportTest, AServerHearsOfBoardsThatComeAndGo) {
  const StreamId server = Attach();
  Wait(absl::Seconds(1));
  servers_[server].events.clear();
  const SessionId board = ConnectBoard("1");
  ASSERT_EQ(servers_[server].events.size(), 1u);
  ASSERT_EQ(servers_[server].events[0].fleet_change().devices_size(), 1);
  EXPECT_EQ(servers_[server].events[0].fleet_change().devices(0).presence(),
            v1::PRESENCE_ONLINE);
  Wait(absl::Seconds(1));
  servers_[server].events.clear();
  Disconnect(board);
  ASSERT_EQ(servers_[server].events.size(), 1u);
  EXPECT_EQ(servers_[server].events[0].fleet_change().devices(0).presence(),
            v1::PRESENCE_SUSPECT);
}

TEST_F(ReportTest, ListDevicesTellsWhatABoardRunsAndSinceWhen) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Wait(absl::Seconds(3));
  EXPECT_EQ(Status("d1").state(), "idle");
  EXPECT_EQ(Status("d1").state_since_ms(), 3000);
  Submit(server, {MakeWork(7, 0)});
  Wait(absl::Seconds(2));
  const v1::DeviceStatus busy = Status("d1");
  EXPECT_EQ(busy.state(), "busy");
  EXPECT_EQ(busy.state_since_ms(), 2000);
  EXPECT_EQ(busy.running(), 1);
  EXPECT_EQ(busy.running_what(), "matmul(m=4,n=4,k=4)");
  EXPECT_EQ(busy.compiler_version(), kCompiler);
  EXPECT_EQ(busy.last_seen_ms(), 5000);
  Finish(board, OneAssigned(board));
  EXPECT_EQ(Status("d1").state(), "idle");
}

TEST_F(ReportTest, ABoardNotSeenForTheLongestTimeIsForgotten) {
  options_.forget_agent = absl::Hours(2);
  Reconfigure();
  Disconnect(ConnectBoard("1"));
  const SessionId present = ConnectBoard("2");
  for (int minute = 0; minute < 119; minute += 1) {
    Wait(absl::Seconds(30));
    Beat(present);
    Wait(absl::Seconds(30));
    Beat(present);
  }
  EXPECT_EQ(Status("d1").state(), "lost");
  for (int i = 0; i < 4; ++i) {
    Wait(absl::Seconds(30));
    Beat(present);
  }
  ASSERT_EQ(core_->ListDevices().devices_size(), 1);
  EXPECT_EQ(core_->ListDevices().devices(0).agent_id(), "a2");
  EXPECT_FALSE(store_.agents.contains("a1"));
  ConnectBoard("1");  // as a new one
  EXPECT_EQ(Status("d1").state(), "idle");
}

TEST_F(ReportTest, GoodbyeTellsAgentsWhenToReturnAndEndsAllStreams) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  core_->Goodbye(absl::Seconds(1));
  Drain();
  ASSERT_TRUE(agents_[board].messages.back().has_goodbye());
  EXPECT_EQ(agents_[board].messages.back().goodbye().reconnect_after_ms(),
            1000);
  EXPECT_EQ(agents_[board].closed->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(servers_[server].closed->code(), absl::StatusCode::kUnavailable);
}

BoardView View(const std::string& id, NotFree why, const MatchKey& key) {
  return {id, key, v1::PRESENCE_ONLINE, {}, why, "ok", "", ""};
}

TEST(WaitText, NamesEachThingThatKeepsBoardsFromTheWork) {
  const MatchKey key{"x", "c1", "cpu", 1};
  const BoardView busy = View("d1", NotFree::kBusy, key);
  BoardView refusing = View("d2", NotFree::kResting, key);
  refusing.refusal = "no disk";
  BoardView stuck = refusing;
  stuck.device_id = "d3";
  stuck.not_free = NotFree::kStuck;
  EXPECT_EQ(WaitText(key, {busy, refusing, stuck}),
            "1 of 3 x boards busy; board d2 refused: no disk; board d3 is "
            "stuck: its work loop stands still");
  EXPECT_EQ(WaitText(key, {View("d1", NotFree::kResting, key)}),
            "board d1 rests a moment after work that it gave back");
  EXPECT_EQ(WaitText(key, {busy, View("d2", NotFree::kFree, key)}),
            "1 of 2 x boards busy; the free ones are to be avoided or failed "
            "this work");
  EXPECT_EQ(WaitText(key, {View("d1", NotFree::kAway, key)}),
            "board d1 has yet to show its devices");
}

TEST(WaitText, CountsTheBoardsThatPeopleKeepFromWork) {
  const MatchKey key{"rpi5", "c1", "cpu", 1};
  const BoardView busy = View("d1", NotFree::kBusy, key);
  BoardView drained = View("d2", NotFree::kHeld, key);
  drained.obstacle = "in maintenance by ann: fan swap";
  BoardView fresh = drained;
  fresh.obstacle = "waiting for approval";
  EXPECT_EQ(
      WaitText(key, {busy, drained, fresh, drained, busy, drained}),
      "2 of 2 rpi5 boards busy; 3 of 6 rpi5 boards in maintenance by ann: fan "
      "swap; 1 of 6 rpi5 boards waiting for approval");
  EXPECT_EQ(WaitText(key, {View("d1", NotFree::kSwitched, key),
                           View("d2", NotFree::kUnproven, key)}),
            "1 of 2 rpi5 boards kept from work while its power is being "
            "switched; 1 of 2 rpi5 boards to be proven by a canary");
  // One that is drained and away is drained: nobody need look for it.
  drained.presence = v1::PRESENCE_LOST;
  EXPECT_EQ(WaitText(key, {drained}),
            "1 of 1 rpi5 board in maintenance by ann: fan "
            "swap");
}

TEST(Options, ContradictionsAreRefused) {
  TrackerOptions options;
  EXPECT_TRUE(Validate(options).ok());
  options.lease = absl::Seconds(5);
  EXPECT_THAT(std::string(Validate(options).message()),
              testing::HasSubstr("lease"));
  options = TrackerOptions();
  options.lost = absl::Seconds(20);
  EXPECT_THAT(std::string(Validate(options).message()),
              testing::HasSubstr("lost limit"));
  options = TrackerOptions();
  options.heartbeat = absl::ZeroDuration();
  EXPECT_THAT(std::string(Validate(options).message()),
              testing::HasSubstr("must be positive"));
}

}  // namespace
}  // namespace regatta
