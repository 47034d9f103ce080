// Agents, trackers and servers that come back.
#include "tests/tracker/core_fixture.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ReconcileTest : public CoreTest {
 protected:
  v1::Hello HelloWith(const std::vector<v1::Assignment>& held,
                      const std::string& instance = "i1") {
    v1::Hello hello = MakeHello("a1", {MakeDevice("d1", 2)}, instance);
    for (const auto& assignment : held) *hello.add_held() = Held(assignment);
    return hello;
  }
  // An accepted assignment on board 1.
  v1::Assignment Start() {
    server_ = Attach();
    board_ = Connect(HelloWith({}));
    Submit(server_, {MakeWork(7, 0)});
    const v1::Assignment assignment = OneAssigned(board_);
    Accept(board_, assignment);
    return assignment;
  }
  v1::Verdict OnlyVerdict(SessionId session) {
    const v1::Welcome welcome = Welcomed(session);
    EXPECT_EQ(welcome.verdicts_size(), 1);
    return welcome.verdicts(0).verdict();
  }

  StreamId server_{};
  SessionId board_{};
};

TEST_F(ReconcileTest, WelcomeTellsTheNumbersOfTheConversation) {
  const v1::Welcome welcome = Welcomed(ConnectBoard("1"));
  EXPECT_EQ(welcome.heartbeat_ms(), 10'000);
  EXPECT_EQ(welcome.lease_ms(), 60'000);
  EXPECT_EQ(welcome.tracker_epoch(), store_.epoch);
  EXPECT_FALSE(welcome.session_id().empty());
}

TEST_F(ReconcileTest, AReconnectingAgentContinuesWhatItHolds) {
  const v1::Assignment assignment = Start();
  Disconnect(board_);
  Wait(absl::Seconds(20));
  board_ = Connect(HelloWith({assignment}));
  EXPECT_EQ(OnlyVerdict(board_), v1::VERDICT_CONTINUE);
  EXPECT_EQ(Welcomed(board_).verdicts(0).lease_ms(), 60'000);
  EXPECT_EQ(Welcomed(board_).verdicts(0).lease_epoch(),
            assignment.lease_epoch());
  Finish(board_, assignment);
  EXPECT_THAT(Results(server_), SizeIs(1));
  EXPECT_EQ(Status("d1").running(), 0);
}

TEST_F(ReconcileTest, AnAgentThatWasLostMustAbandonWhatIsQueuedAgain) {
  const v1::Assignment assignment = Start();
  Disconnect(board_);
  Wait(absl::Seconds(61));
  board_ = Connect(HelloWith({assignment}));
  EXPECT_EQ(OnlyVerdict(board_), v1::VERDICT_ABANDON);
  EXPECT_EQ(OneAssigned(board_).attempt(), 2);
}

// Whoever asks first after a restart, the agent or the server.
TEST_F(ReconcileTest, WhatAnAgentBringsAlongBelongsToItsDevice) {
  const std::vector<v1::DeviceInfo> devices = {MakeDevice("d1"),
                                               MakeDevice("d2")};
  const std::vector<v1::Work> works = {MakeWork(7, 0), MakeWork(7, 1)};
  for (const bool server_first : {true, false}) {
    server_ = Attach();
    board_ = Connect(MakeHello("a1", devices));
    Submit(server_, works);
    v1::Hello hello = MakeHello("a1", devices);
    std::string of_d1, of_d2;
    for (const v1::Assignment& assignment : Assigned(board_)) {
      Accept(board_, assignment);
      *hello.add_held() = Held(assignment);
      (assignment.device_id() == "d1" ? of_d1 : of_d2) =
          assignment.assignment_id();
    }
    ASSERT_FALSE(of_d1.empty() || of_d2.empty());
    Restart();
    if (server_first) {
      server_ = Attach();
      Submit(server_, works);
      board_ = Connect(hello);
    } else {
      board_ = Connect(hello);
      server_ = Attach();
      Submit(server_, works);
    }
    EXPECT_EQ(Status("d1").running(), 1);
    EXPECT_EQ(Status("d2").running(), 1);
    v1::ControlDevicesRequest request;
    request.mutable_devices()->add_device_ids("d1");
    request.set_command(v1::DEVICE_COMMAND_QUARANTINE);
    request.set_reason("looks odd");
    request.set_by("ann");
    ASSERT_TRUE(core_->ControlDevices(request).ok());
    Drain();
    EXPECT_THAT(Cancelled(board_), ElementsAre(of_d1));
    EXPECT_EQ(Status("d2").running(), 1) << "it is another device";
    store_ = MemoryFleetStore();
    Restart();
  }
}

TEST_F(ReconcileTest, ALateResultGoesToTheServerAndIsAckedToItsSender) {
  const v1::Assignment late = Start();
  Disconnect(board_);
  Wait(absl::Seconds(55));
  const SessionId other = ConnectBoard("2");
  Wait(absl::Seconds(6));
  const v1::Assignment current = OneAssigned(other);
  Accept(other, current);
  board_ = Connect(HelloWith({}));
  SendResults(board_, {MakeResult(late, 0, /*last=*/true)});
  const auto results = Results(server_);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(Status("d2").running(), 1) << "it ends no lease of another board";
  Commit(server_, results);
  EXPECT_THAT(Acks(board_), SizeIs(1));
  EXPECT_THAT(Acks(other), IsEmpty());
  EXPECT_THAT(Cancelled(other), ElementsAre(current.assignment_id()))
      << "the trial is stored, no need to run it again";
}

TEST_F(ReconcileTest, TheNewestSessionOfAnAgentWins) {
  const v1::Assignment assignment = Start();
  const SessionId old = board_;
  board_ = Connect(HelloWith({assignment}));
  ASSERT_TRUE(agents_[old].closed.has_value());
  EXPECT_EQ(agents_[old].closed->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_ONLINE);
  // The end of the old connection arrives late and changes nothing.
  Disconnect(old);
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(Status("d1").running(), 1);
}

TEST_F(ReconcileTest, AnAgentWithResultsInItsSpoolGetsTwoSecondsToSendThem) {
  const v1::Assignment assignment = Start();
  Disconnect(board_);
  v1::Hello hello = HelloWith({}, "i2");
  hello.set_spooled_results(1);
  board_ = Connect(hello);
  EXPECT_THAT(Assigned(board_), IsEmpty());
  Finish(board_, assignment);
  Wait(absl::Seconds(5));
  EXPECT_THAT(Assigned(board_), IsEmpty()) << "no second run was needed";
  EXPECT_THAT(Results(server_), SizeIs(1));
}

TEST_F(ReconcileTest, ADeviceOfAConnectedAgentIsNotGivenToAnother) {
  board_ = ConnectBoard("1");
  const SessionId thief = Connect(MakeHello("a2", {MakeDevice("d1")}));
  ASSERT_TRUE(agents_[thief].closed.has_value());
  EXPECT_EQ(agents_[thief].closed->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(agents_[thief].closed->message()),
      testing::AllOf(testing::HasSubstr("d1"), testing::HasSubstr("a1")));
  EXPECT_FALSE(agents_[board_].closed.has_value());
}

TEST_F(ReconcileTest, ADeviceOfAnAgentThatIsGoneMovesToTheNewOne) {
  const v1::Assignment first = Start();
  Disconnect(board_);
  const SessionId heir = Connect(MakeHello("a2", {MakeDevice("d1")}));
  EXPECT_EQ(Status("d1").agent_id(), "a2");
  EXPECT_EQ(OneAssigned(heir).attempt(), 2);
}

// --- a restarted tracker

TEST_F(ReconcileTest, ARestartedTrackerGivesHeldWorkToNobodyElse) {
  const v1::Assignment assignment = Start();
  Restart();
  const SessionId other = ConnectBoard("2");
  server_ = Attach();
  Submit(server_, {MakeWork(7, 0), MakeWork(7, 1)});
  EXPECT_THAT(Assigned(other), IsEmpty()) << "a1 may hold any of it";
  board_ = Connect(HelloWith({assignment}));
  EXPECT_EQ(OnlyVerdict(board_), v1::VERDICT_CONTINUE);
  EXPECT_THAT(Ids(Assigned(other)), ElementsAre("log1/7/0/1"))
      << "the window ends with the last holder's report";
  EXPECT_THAT(Assigned(board_), IsEmpty());
}

TEST_F(ReconcileTest, TheRestartWindowEndsAfterNinetySeconds) {
  Start();
  Restart();
  const SessionId other = ConnectBoard("2");
  server_ = Attach();
  Submit(server_, {MakeWork(7, 0)});
  for (int i = 0; i < 8; ++i) {
    Wait(absl::Seconds(11));
    Beat(other);
  }
  EXPECT_THAT(Assigned(other), IsEmpty());
  EXPECT_THAT(WaitReason(server_), testing::HasSubstr("tracker's restart"));
  Wait(absl::Seconds(3));
  EXPECT_THAT(Assigned(other), SizeIs(1));
}

TEST_F(ReconcileTest, TheWindowHoldsBackOnlyTheClassOfTheHolder) {
  Start();
  Restart();
  const SessionId arm =
      Connect(MakeHello("a2", {MakeDevice("d2", 1, "cortex-a72-4c")}));
  server_ = Attach();
  v1::Work work = MakeWork(8, 0);
  work.set_device_class("cortex-a72-4c");
  Submit(server_, {work});
  EXPECT_THAT(Assigned(arm), SizeIs(1));
}

TEST_F(ReconcileTest, WorkBroughtAlongBeforeTheServerAsksIsKept) {
  const v1::Assignment assignment = Start();
  Restart();
  board_ = Connect(HelloWith({assignment}));
  EXPECT_EQ(OnlyVerdict(board_), v1::VERDICT_CONTINUE);
  server_ = Attach();
  Submit(server_, {MakeWork(7, 0)});
  EXPECT_THAT(Assigned(board_), IsEmpty());
  Finish(board_, assignment);
  const auto results = Results(server_);
  ASSERT_THAT(results, SizeIs(1));
  Commit(server_, results);
  EXPECT_THAT(Acks(board_), SizeIs(1));
}

TEST_F(ReconcileTest, WorkThatNoServerAsksForIsAbandonedSoonAfterItAttached) {
  const v1::Assignment assignment = Start();
  Restart();
  board_ = Connect(HelloWith({assignment}));
  EXPECT_EQ(OnlyVerdict(board_), v1::VERDICT_CONTINUE);
  Wait(absl::Seconds(20));
  EXPECT_THAT(Cancelled(board_), IsEmpty()) << "no server was there to ask";
  server_ = Attach();
  Wait(absl::Seconds(4));
  EXPECT_THAT(Cancelled(board_), IsEmpty());
  Wait(absl::Seconds(2));
  EXPECT_THAT(Cancelled(board_), ElementsAre(assignment.assignment_id()));
}

TEST_F(ReconcileTest, WorkUnknownToAServerThatIsLongHereIsAbandonedAtOnce) {
  const v1::Assignment assignment = Start();
  Restart();
  server_ = Attach();
  Wait(absl::Seconds(6));
  board_ = Connect(HelloWith({assignment}));
  EXPECT_EQ(OnlyVerdict(board_), v1::VERDICT_ABANDON);
}

TEST_F(ReconcileTest, AResultThatArrivesBeforeTheWorkIsNotRunAgain) {
  const v1::Assignment assignment = Start();
  Restart();
  board_ = Connect(HelloWith({}));
  Finish(board_, assignment);
  server_ = Attach();
  EXPECT_THAT(Results(server_), SizeIs(1));
  Submit(server_, {MakeWork(7, 0)});
  EXPECT_THAT(Assigned(board_), IsEmpty());
}

TEST_F(ReconcileTest, EpochsOfTwoTrackerRunsNeverMeet) {
  const v1::Assignment before = Start();
  Restart();
  server_ = Attach();
  board_ = Connect(HelloWith({}, "i2"));
  Submit(server_, {MakeWork(7, 0)});
  EXPECT_GT(OneAssigned(board_).lease_epoch(), before.lease_epoch());
}

TEST_F(ReconcileTest, BoardsOfTheLastRunAreListedUntilTheyReport) {
  ConnectBoard("1");
  Wait(absl::Seconds(1));
  Restart();
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_SUSPECT);
  EXPECT_EQ(Status("d1").info().device_class(), kClass);
  Wait(absl::Seconds(61));
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_LOST);
  Wait(absl::Seconds(1));
  Restart();
  EXPECT_EQ(Status("d1").state(), "lost") << "known lost before, lost now";
}

TEST_F(ReconcileTest, BoardsLostForAMonthAreForgotten) {
  ConnectBoard("1");
  Wait(absl::Seconds(62));
  clock_.Advance(absl::Hours(24 * 31));
  Restart();
  EXPECT_EQ(core_->ListDevices().devices_size(), 0);
  EXPECT_THAT(store_.agents, IsEmpty());
}

TEST_F(ReconcileTest, AnIdleAgentIsNoLongerNotedAsAHolder) {
  const v1::Assignment assignment = Start();
  EXPECT_TRUE(store_.agents["a1"].holds_leases);
  Finish(board_, assignment);
  for (int i = 0; i < 7; ++i) {
    Wait(absl::Seconds(10));
    Beat(board_);
  }
  EXPECT_FALSE(store_.agents["a1"].holds_leases);
}

// --- a restarted server

TEST_F(ReconcileTest, ADetachedServerGetsItsResultsWhenItAttachesAgain) {
  const v1::Assignment assignment = Start();
  core_->ServerClosed(server_);
  Finish(board_, assignment);
  EXPECT_THAT(Acks(board_), IsEmpty());
  server_ = Attach();
  const auto results = Results(server_);
  ASSERT_THAT(results, SizeIs(1));
  Commit(server_, results);
  const auto acks = Acks(board_);
  ASSERT_THAT(acks, SizeIs(1));
  EXPECT_EQ(acks[0].status(), v1::ACK_STATUS_STORED);
  EXPECT_EQ(acks[0].trial_id(), "7/0/0");
}

TEST_F(ReconcileTest, AttachedListsTheWorkThatIsStillHeld) {
  Start();
  Submit(server_, {MakeWork(7, 1), MakeWork(7, 2), MakeWork(7, 3)});
  core_->ServerClosed(server_);
  server_ = Attach();
  const auto& event = servers_[server_].events.front();
  ASSERT_TRUE(event.has_attached());
  EXPECT_THAT(
      event.attached().held_work_ids(),
      testing::UnorderedElementsAre("7/0/0", "7/0/1", "7/0/2", "7/0/3"));
  EXPECT_EQ(event.attached().tracker_epoch(), store_.epoch);
}

TEST_F(ReconcileTest, TheNewestStreamOfAServerWins) {
  const v1::Assignment assignment = Start();
  const StreamId old = server_;
  server_ = Attach();
  ASSERT_TRUE(servers_[old].closed.has_value());
  EXPECT_EQ(servers_[old].closed->code(), absl::StatusCode::kAborted);
  core_->ServerClosed(old);
  Finish(board_, assignment);
  EXPECT_THAT(Results(server_), SizeIs(1));
}

TEST_F(ReconcileTest, QueuedWorkOfAServerThatStaysAwayIsDropped) {
  server_ = Attach();
  Submit(server_, {MakeWork(7, 0)});
  core_->ServerClosed(server_);
  clock_.Advance(options_.server_away);
  core_->Tick();
  Drain();
  EXPECT_THAT(Assigned(ConnectBoard("1")), IsEmpty());
  server_ = Attach();
  EXPECT_THAT(servers_[server_].events.front().attached().held_work_ids(),
              IsEmpty());
}

}  // namespace
}  // namespace regatta
