// Whose fault it is: candidates that bring boards down, boards that fail by
// themselves, and what must not be mistaken for either.
#include "tests/tracker/core_fixture.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FaultTest : public CoreTest {
 protected:
  void ReleaseFault(SessionId session, const v1::Assignment& assignment) {
    v1::AgentMessage message;
    v1::Release* release = message.mutable_release();
    release->set_assignment_id(assignment.assignment_id());
    release->set_lease_epoch(assignment.lease_epoch());
    release->set_reason("the driver hangs");
    release->set_device_fault(true);
    Say(session, message);
  }
  // One good trial on the board, of work that is committed at once.
  void RunOne(StreamId server, SessionId board, int64_t ordinal,
              v1::Outcome outcome = v1::OUTCOME_OK) {
    Submit(server, {MakeWork(50, ordinal)});
    const v1::Assignment assignment = OneAssigned(board);
    Accept(board, assignment);
    v1::SpooledResult result = MakeResult(assignment, 0, true, outcome);
    if (outcome == v1::OUTCOME_DEVICE_FAULT) {
      result.mutable_result()->set_detail("no memory");
    }
    SendResults(board, {result});
    Commit(server, Results(server));
  }
};

TEST_F(FaultTest, APoisonCandidateHitsTwoBoardsAndIsBlamed) {
  const StreamId server = Attach();
  SessionId one = Boot("1", 1);
  Submit(server, {MakeWork(7, 0)});
  Accept(one, OneAssigned(one));
  SessionId two = Boot("2", 1);
  const SessionId three = Boot("3", 1);
  // It reboots the board: a new boot id, nothing held.
  Disconnect(one);
  one = Boot("1", 2);
  std::vector<SessionId> others;
  v1::Assignment second;
  for (SessionId board : {two, three}) {
    for (const auto& a : Assigned(board)) {
      second = a;
      others.push_back(board);
    }
  }
  ASSERT_THAT(others, SizeIs(1));
  EXPECT_EQ(second.attempt(), 2);
  Accept(others[0], second);
  Disconnect(others[0]);
  Boot(others[0] == two ? "2" : "3", 2);
  const auto results = Results(server);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].outcome(), v1::OUTCOME_CRASHED);
  EXPECT_THAT(results[0].detail(), HasSubstr("boards d1 and d"));
  // No board is taken out for it.
  for (const char* id : {"d1", "d2", "d3"}) {
    EXPECT_EQ(Trust(id), v1::TRUST_UNKNOWN) << id;
  }
  EXPECT_EQ(results[0].provenance(), "tracker");
}

TEST_F(FaultTest, OnlyTheTrialThatRanIsBlamedTheOthersGoOn) {
  const StreamId server = Attach();
  const SessionId one = Boot("1", 1);
  const SessionId two = Boot("2", 1);
  Submit(server, {MakeWork(7, 0, /*trials=*/3)});
  std::vector<v1::Assignment> first = Assigned(one);
  const bool on_one = !first.empty();
  SessionId board = on_one ? one : two;
  const v1::Assignment assignment = on_one ? first[0] : OneAssigned(two);
  Accept(board, assignment);
  SendResults(board, {MakeResult(assignment, 0, false)});
  ReleaseFault(board, assignment);
  board = on_one ? two : one;
  const v1::Assignment again = OneAssigned(board);
  ASSERT_EQ(again.trials_size(), 2);
  Accept(board, again);
  Results(server);
  ReleaseFault(board, again);
  const auto blamed = Results(server);
  ASSERT_THAT(blamed, SizeIs(1));
  EXPECT_EQ(blamed[0].spec().trial_id(), "7/0/1");
  EXPECT_EQ(blamed[0].outcome(), v1::OUTCOME_CRASHED);
  // The third was not running; it waits for a board.
  Wait(absl::Seconds(2));
  std::vector<v1::Assignment> rest = Assigned(one);
  for (const auto& a : Assigned(two)) rest.push_back(a);
  ASSERT_THAT(rest, SizeIs(1));
  ASSERT_EQ(rest[0].trials_size(), 1);
  EXPECT_EQ(rest[0].trials(0).trial_id(), "7/0/2");
}

TEST_F(FaultTest, ALossThatTurnsOutToBeARebootIsBlamedLate) {
  const StreamId server = Attach();
  const SessionId one = Boot("1", 1);
  Submit(server, {MakeWork(7, 0)});
  Accept(one, OneAssigned(one));
  // Silent for a minute: lost. Only its return shows that it rebooted.
  Disconnect(one);
  Wait(absl::Seconds(61));
  const SessionId two = Boot("2", 1);
  const v1::Assignment second = OneAssigned(two);
  Accept(two, second);
  Boot("1", 2);
  EXPECT_THAT(Results(server), IsEmpty()) << "one board only so far";
  ReleaseFault(two, second);
  const auto results = Results(server);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].outcome(), v1::OUTCOME_CRASHED);
}

TEST_F(FaultTest, AnAgentThatDiesIsNoBoardThatFails) {
  const StreamId server = Attach();
  for (int n = 1; n <= 3; ++n) {
    const SessionId board =
        Connect(MakeHello("a1", {MakeDevice("d1")}, absl::StrCat("i", n)));
    if (n == 1) Submit(server, {MakeWork(7, 0)});
    Accept(board, OneAssigned(board));
    Disconnect(board);
  }
  Connect(MakeHello("a1", {MakeDevice("d1")}, "i9"));
  const auto results = Results(server);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].outcome(), v1::OUTCOME_AGENT_LOST);
}

TEST_F(FaultTest, ADeviceFaultIsTriedOnAnotherBoardWhereThereIsOne) {
  const StreamId server = Attach();
  const SessionId one = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment first = OneAssigned(one);
  Accept(one, first);
  const SessionId two = ConnectBoard("2");
  SendResults(one, {MakeResult(first, 0, true, v1::OUTCOME_DEVICE_FAULT)});
  EXPECT_THAT(Results(server), IsEmpty());
  EXPECT_EQ(Acks(one).at(0).status(), v1::ACK_STATUS_REJECTED);
  const v1::Assignment second = OneAssigned(two);
  Accept(two, second);
  SendResults(two, {MakeResult(second, 0, true)});
  const auto results = Results(server);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].outcome(), v1::OUTCOME_OK);
}

TEST_F(FaultTest, ADeviceFaultOnTheOnlyBoardIsTheResult) {
  const StreamId server = Attach();
  const SessionId one = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment first = OneAssigned(one);
  Accept(one, first);
  SendResults(one, {MakeResult(first, 0, true, v1::OUTCOME_DEVICE_FAULT)});
  const auto results = Results(server);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].outcome(), v1::OUTCOME_DEVICE_FAULT);
}

TEST_F(FaultTest, ThreeFaultsInARowQuarantineABoardWhoseClassIsWell) {
  const StreamId server = Attach();
  // The other board is known to be well, then out of the way.
  const SessionId two = ConnectBoard("2");
  for (int i = 0; i < 10; ++i) RunOne(server, two, i);
  Disconnect(two);
  const SessionId one = ConnectBoard("1");
  for (int i = 0; i < 2; ++i) {
    RunOne(server, one, 100 + i, v1::OUTCOME_DEVICE_FAULT);
  }
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
  RunOne(server, one, 103, v1::OUTCOME_DEVICE_FAULT);
  EXPECT_EQ(Trust("d1"), v1::TRUST_QUARANTINED);
  EXPECT_THAT(Status("d1").obstacle(),
              HasSubstr("3 device failures in a row, while the other boards of "
                        "its class are well; the last: no memory"));
}

TEST_F(FaultTest, OneInFiveFaultsIsTooManyEvenWhenTheyAreScattered) {
  const StreamId server = Attach();
  const SessionId two = ConnectBoard("2");
  for (int i = 0; i < 10; ++i) RunOne(server, two, i);
  Disconnect(two);
  const SessionId one = ConnectBoard("1");
  // Every fourth of twelve: 25 %.
  int i = 0;
  for (; i < 11; ++i) {
    RunOne(server, one, 100 + i,
           i % 4 == 3 ? v1::OUTCOME_DEVICE_FAULT : v1::OUTCOME_OK);
    ASSERT_EQ(Trust("d1"), v1::TRUST_UNKNOWN) << i;
  }
  RunOne(server, one, 100 + i, v1::OUTCOME_DEVICE_FAULT);
  EXPECT_EQ(Trust("d1"), v1::TRUST_QUARANTINED);
}

TEST_F(FaultTest, AStreamOfBadCandidatesTakesNoBoardOut) {
  const StreamId server = Attach();
  const SessionId one = ConnectBoard("1");
  for (int i = 0; i < 30; ++i) {
    RunOne(server, one, i, v1::OUTCOME_DEVICE_FAULT);
  }
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN)
      << "nothing shows that the board is worse than its class";
}

TEST_F(FaultTest, TheFourthUnannouncedRebootInAnHourQuarantines) {
  Boot("1", 1);
  for (int n = 2; n <= 4; ++n) {
    Wait(absl::Minutes(1));
    Boot("1", n);
    EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN) << n;
  }
  Wait(absl::Minutes(1));
  Boot("1", 5);
  EXPECT_EQ(Trust("d1"), v1::TRUST_QUARANTINED);
  EXPECT_THAT(Status("d1").obstacle(),
              HasSubstr("4 unannounced reboots in an hour"));
}

// A stream that reboots every board says nothing about one of them.
TEST_F(FaultTest, RebootsOfAWholeClassTakeNoBoardOut) {
  for (int n = 1; n <= 6; ++n) {
    for (const char* id : {"1", "2", "3"}) {
      Boot(id, n);
      Wait(absl::Seconds(10));
    }
  }
  for (const char* id : {"d1", "d2", "d3"}) {
    EXPECT_EQ(Trust(id), v1::TRUST_UNKNOWN) << id;
  }
  const auto history = core_->DeviceHistory(v1::DeviceHistoryRequest());
  for (const auto& event : history->events()) {
    EXPECT_NE(event.what(), "stopped");
  }
}

// Up to one of the others' is well, as three are of the board's own.
TEST_F(FaultTest, RebootsCountAgainstTheMedianOfTheOthers) {
  for (const char* id : {"2", "3"}) Boot(id, 1);
  ConnectBoard("4");
  for (int n = 1; n <= 4; ++n) {
    Boot("1", n);
    if (n <= 3) Boot("2", n);
    if (n <= 3) Boot("3", n);
    Wait(absl::Minutes(2));
  }
  Boot("1", 5);
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN) << "two of three rebooted twice";
  // An hour later theirs are forgotten; it goes on.
  Wait(absl::Minutes(62));
  for (int n = 6; n <= 9; ++n) {
    EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN) << n;
    Boot("1", n);
    Wait(absl::Minutes(1));
  }
  EXPECT_EQ(Trust("d1"), v1::TRUST_QUARANTINED);
  core_->CheckIndices();
}

TEST_F(FaultTest, OneMachineWithTwoDevicesDoesNotStopItsClass) {
  for (int i = 0; i < 5; ++i) ConnectBoard(absl::StrCat("x", i));
  for (int n = 1; n <= 5; ++n) {
    v1::Hello hello = MakeHello("a1", {MakeDevice("d1"), MakeDevice("d2")},
                                absl::StrCat("i", n));
    hello.set_boot_id(absl::StrCat("boot ", n));
    Connect(hello);
    Wait(absl::Minutes(1));
  }
  EXPECT_EQ(Trust("d1"), v1::TRUST_QUARANTINED);
  EXPECT_EQ(Trust("d2"), v1::TRUST_QUARANTINED);
  const auto history = core_->DeviceHistory(v1::DeviceHistoryRequest());
  for (const auto& event : history->events()) {
    EXPECT_NE(event.what(), "stopped");
  }
}

TEST_F(FaultTest, ATenthOfAClassIsCountedInMachinesNotInDevices) {
  const auto boot = [&](int machine, int n) {
    std::vector<v1::DeviceInfo> devices;
    for (int i = 0; i < 8; ++i) {
      devices.push_back(MakeDevice(absl::StrCat("m", machine, "-", i)));
    }
    v1::Hello hello =
        MakeHello(absl::StrCat("m", machine), devices, absl::StrCat("i", n));
    hello.set_boot_id(absl::StrCat("boot ", n));
    Connect(hello);
  };
  for (int machine = 0; machine < 5; ++machine) boot(machine, 1);
  for (int n = 2; n <= 5; ++n) {
    Wait(absl::Minutes(1));
    boot(0, n);
    boot(1, n);
  }
  // Eight devices of 40 went, but one machine of five: it is the tenth.
  int quarantined = 0;
  for (int machine = 0; machine < 5; ++machine) {
    for (int i = 0; i < 8; ++i) {
      const std::string id = absl::StrCat("m", machine, "-", i);
      const bool out = Trust(id) == v1::TRUST_QUARANTINED;
      quarantined += out ? 1 : 0;
      EXPECT_EQ(out, machine == 0) << id;
    }
  }
  EXPECT_EQ(quarantined, 8);
  EXPECT_THAT(Status("m1-0").obstacle(),
              HasSubstr("more than 1 of 5 znver4-2c boards"));
}

TEST(ClassBrake, AWindowThatPassedLeavesNothing) {
  ClassBrake brake;
  const SteadyTime start{1};
  EXPECT_TRUE(brake.TakeOut("x", "a1", 2, start));
  EXPECT_FALSE(brake.TakeOut("x", "a2", 2, start));
  EXPECT_TRUE(brake.Stop("x", "many", start));
  EXPECT_TRUE(brake.Due(start + absl::Minutes(9)).empty());
  // A stall of this process is no time in which anything was seen.
  brake.ExtendBy(absl::Minutes(5));
  EXPECT_TRUE(brake.Due(start + absl::Minutes(14)).empty());
  EXPECT_THAT(brake.Due(start + absl::Minutes(15)), ElementsAre("x"));
  EXPECT_TRUE(brake.Lift("x"));
  EXPECT_THAT(brake.Due(start + absl::Minutes(15)), IsEmpty());
  EXPECT_FALSE(brake.Lift("x")) << "forgotten";
  EXPECT_TRUE(brake.TakeOut("x", "a2", 2, start + absl::Minutes(15)));
}

// What an agent once showed goes with it, under whatever names.
TEST_F(FaultTest, AForgottenAgentLeavesNoDeviceBehind) {
  SessionId board{};
  for (int i = 0; i < 5; ++i) {
    v1::Hello hello =
        MakeHello("a1", {MakeDevice(absl::StrCat("name", i))}, "i1");
    board = Connect(hello);
  }
  ConnectBoard("2");
  Wait(options_.tick);
  EXPECT_EQ(store_.devices.size(), 6u) << "what was decided is kept meanwhile";
  Disconnect(board);
  Wait(options_.lost + absl::Seconds(2));
  clock_.Advance(options_.forget_agent + absl::Hours(1));
  ConnectBoard("2");
  Wait(absl::Seconds(2) + options_.stall);
  EXPECT_EQ(store_.devices.size(), 1u);
  EXPECT_TRUE(store_.devices.contains("d2"));
}

TEST_F(FaultTest, TheSameFailureOverAndOverIsOneAndItsTextIsCut) {
  const StreamId server = Attach();
  const SessionId one = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment first = OneAssigned(one);
  Accept(one, first);
  ConnectBoard("2");
  v1::SpooledResult failed =
      MakeResult(first, 0, false, v1::OUTCOME_DEVICE_FAULT);
  failed.mutable_result()->set_detail(std::string(100'000, 'x'));
  for (int i = 0; i < 50; ++i) SendResults(one, {failed});
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
  int failures = 0;
  const auto history = core_->DeviceHistory(v1::DeviceHistoryRequest());
  for (const auto& event : history->events()) {
    failures += event.what() == "device failure";
    EXPECT_LE(event.reason().size(), 600u);
  }
  EXPECT_EQ(failures, 1);
}

TEST_F(FaultTest, RebootsThatAreAnnouncedOrRareAreFine) {
  SessionId board = Boot("1", 1);
  for (int n = 2; n <= 8; ++n) {
    v1::AgentMessage message;
    message.mutable_leaving()->set_returns_within_ms(60'000);
    Say(board, message);
    Disconnect(board);
    Wait(absl::Seconds(30));
    board = Boot("1", n);
  }
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
  for (int n = 9; n <= 15; ++n) {
    Disconnect(board);
    Wait(absl::Minutes(21));
    board = Boot("1", n);
  }
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
}

TEST_F(FaultTest, ARebootIsSeenOverARestartOfTheTracker) {
  Boot("1", 1);
  Wait(absl::Seconds(1));
  Restart();
  Boot("1", 2);
  v1::DeviceHistoryRequest request;
  const auto history = core_->DeviceHistory(request);
  EXPECT_EQ(history->events(history->events_size() - 1).what(), "rebooted");
}

TEST_F(FaultTest, TwoAgentsUnderOneNameAreQuarantined) {
  // A new process is no sign of a second one.
  for (int n = 0; n < 20; ++n) {
    Connect(MakeHello("a1", {MakeDevice("d1")}, absl::StrCat("new", n)));
  }
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
  for (int turn = 0; turn < 4; ++turn) {
    EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN) << turn;
    Connect(MakeHello("a1", {MakeDevice("d1")}, "x"));
    Connect(MakeHello("a1", {MakeDevice("d1")}, "y"));
  }
  EXPECT_EQ(Trust("d1"), v1::TRUST_QUARANTINED);
  EXPECT_THAT(Status("d1").obstacle(), HasSubstr("under the name a1"));
}

}  // namespace
}  // namespace regatta
