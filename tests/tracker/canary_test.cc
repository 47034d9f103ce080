// Canaries: boards are proven before they get the work of jobs, and by the same
// kernels again and again.
#include "tests/tracker/canary_fixture.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(CanaryTest, ANewBoardIsProvenBeforeItGetsWork) {
  const StreamId server = AttachWithCanaries();
  const SessionId board = ConnectBoard("1", /*credit=*/2);
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment round = OneAssigned(board);
  ASSERT_TRUE(IsCanary(round));
  ASSERT_EQ(round.trials_size(), 2);
  EXPECT_EQ(round.trials(0).workload(), "workload of compute");
  EXPECT_EQ(round.trials(0).kind(), v1::TRIAL_KIND_CANARY);
  EXPECT_EQ(Status("d1").state(), "checking");
  Wait(absl::Seconds(1));
  EXPECT_EQ(WaitReason(server),
            "1 of 1 znver4-2c board to be proven by a canary");
  Accept(board, round);
  Pass(board, round);
  EXPECT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
  EXPECT_EQ(OneAssigned(board).assignment_id(), "log1/7/0/0");
  // The board forgets its results; no server ever hears of them.
  EXPECT_THAT(Acks(board), SizeIs(2));
  EXPECT_THAT(Results(server), IsEmpty());
}

TEST_F(CanaryTest, WorkThatWaitsForAHealthyBoardsCanaryIsToldSo) {
  options_.canary_trials = 1;
  Reconfigure();
  const StreamId server = AttachWithCanaries();
  const SessionId board = ConnectBoard("1", /*credit=*/2);
  Pass(board, OneAssigned(board));
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment work = OneAssigned(board);
  Accept(board, work);
  Finish(board, work);
  Commit(server, Results(server));
  Wait(options_.tick);
  ASSERT_TRUE(IsCanary(OneAssigned(board)));
  ASSERT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
  Submit(server, {MakeWork(7, 1)});
  Wait(absl::Seconds(1));
  EXPECT_EQ(WaitReason(server),
            "1 of 1 znver4-2c board to be proven by a canary");
}

TEST_F(CanaryTest, WithoutACanaryForItABoardWorksUnproven) {
  const StreamId server = Attach();
  Offer(server, {MakeCanary("compute", "another target")});
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  EXPECT_EQ(OneAssigned(board).assignment_id(), "log1/7/0/0");
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
}

TEST_F(CanaryTest, OneThatTheBoardCannotBuildSaysNothingOfTheBoard) {
  const StreamId server = AttachWithCanaries();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  Fail(board, OneAssigned(board), v1::OUTCOME_COMPILE_ERROR);
  Fail(board, NextRound(board), v1::OUTCOME_COMPILE_ERROR);
  Fail(board, NextRound(board), v1::OUTCOME_COMPILE_ERROR);
  EXPECT_EQ(OneAssigned(board).assignment_id(), "log1/7/0/0");
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
  EXPECT_EQ(Events("d1").back(), "goes unproven");
}

TEST_F(CanaryTest, ThreeFailedRoundsQuarantine) {
  const StreamId server = AttachWithCanaries();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  Fail(board, OneAssigned(board));
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
  Fail(board, NextRound(board));
  Fail(board, NextRound(board), v1::OUTCOME_CRASHED);
  EXPECT_EQ(Trust("d1"), v1::TRUST_QUARANTINED);
  EXPECT_THAT(Status("d1").obstacle(),
              HasSubstr("3 canaries in a row failed; the last: canary "
                        "compute: crashed"));
  Wait(absl::Seconds(20));
  EXPECT_THAT(Assigned(board), IsEmpty());
  // An operator's release is followed by one round.
  Control(v1::DEVICE_COMMAND_RELEASE, "d1");
  Pass(board, OneAssigned(board));
  EXPECT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
  EXPECT_EQ(OneAssigned(board).assignment_id(), "log1/7/0/0");
}

TEST_F(CanaryTest, AResetAndThreeRoundsEndAQuarantineToo) {
  AttachWithCanaries();
  SessionId board = ConnectBoard("1");
  Fail(board, OneAssigned(board));
  Fail(board, NextRound(board));
  Fail(board, NextRound(board));
  ASSERT_EQ(Trust("d1"), v1::TRUST_QUARANTINED);
  Disconnect(board);
  v1::Hello hello = MakeHello("a1", {MakeDevice("d1")}, "i2");
  hello.set_boot_id("another boot");
  board = Connect(hello);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(Trust("d1"), v1::TRUST_QUARANTINED);
    Pass(board, OneAssigned(board));
  }
  EXPECT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
}

TEST_F(CanaryTest, ARebootInMidRunIsFollowedByACanaryBeforeOtherWork) {
  const StreamId server = AttachWithCanaries();
  SessionId board = ConnectBoard("1");
  Pass(board, OneAssigned(board));
  ASSERT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment work = OneAssigned(board);
  Accept(board, work);
  Disconnect(board);
  v1::Hello hello = MakeHello("a1", {MakeDevice("d1")}, "i2");
  hello.set_boot_id("another boot");
  board = Connect(hello);
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
  const v1::Assignment round = OneAssigned(board);
  ASSERT_TRUE(IsCanary(round));
  Pass(board, round);
  const v1::Assignment again = OneAssigned(board);
  EXPECT_EQ(again.assignment_id(), work.assignment_id());
  EXPECT_EQ(again.attempt(), 2);
}

TEST_F(CanaryTest, AResetDoesNotEndWhatAPersonDecided) {
  AttachWithCanaries();
  SessionId board = ConnectBoard("1");
  Pass(board, OneAssigned(board));
  Control(v1::DEVICE_COMMAND_QUARANTINE, "d1");
  Disconnect(board);
  v1::Hello hello = MakeHello("a1", {MakeDevice("d1")}, "i2");
  hello.set_boot_id("another boot");
  board = Connect(hello);
  Wait(absl::Seconds(20));
  EXPECT_THAT(Assigned(board), IsEmpty());
  EXPECT_EQ(Trust("d1"), v1::TRUST_QUARANTINED);
}

TEST_F(CanaryTest, CanariesComeEveryHalfHourAndEvery500Trials) {
  options_.canary_trials = 5;
  Reconfigure();
  const StreamId server = AttachWithCanaries();
  const SessionId board = ConnectBoard("1");
  Pass(board, OneAssigned(board));
  for (int i = 0; i < 29; ++i) {
    Wait(absl::Minutes(1) - absl::Seconds(30));
    Beat(board);
    Wait(absl::Seconds(30));
    Beat(board);
  }
  EXPECT_THAT(Assigned(board), IsEmpty());
  Wait(absl::Seconds(20));
  Beat(board);
  Wait(absl::Seconds(41));
  Beat(board);
  v1::Assignment round = OneAssigned(board);
  EXPECT_TRUE(IsCanary(round));
  // It stays believed meanwhile.
  EXPECT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
  Pass(board, round);
  for (int i = 0; i < 6; ++i) Submit(server, {MakeWork(7, i)});
  for (int i = 0; i < 5; ++i) {
    const v1::Assignment work = OneAssigned(board);
    EXPECT_FALSE(IsCanary(work));
    Accept(board, work);
    Finish(board, work);
    if (i == 3) Wait(absl::Milliseconds(500));
  }
  Assigned(board);  // the sixth went out before the tick
  Wait(absl::Milliseconds(500));
  EXPECT_EQ(Status("d1").standing().canaries_owed(), 1);
}

TEST_F(CanaryTest, ThirtyPercentThatFailStopTheClassAndNobodyMoreIsTakenOut) {
  const StreamId server = AttachWithCanaries();
  std::vector<SessionId> boards;
  for (int i = 0; i < 10; ++i) {
    boards.push_back(ConnectBoard(absl::StrCat("x", i)));
  }
  std::vector<v1::Assignment> rounds;
  for (SessionId board : boards) rounds.push_back(OneAssigned(board));
  for (int i = 3; i < 10; ++i) Pass(boards[i], rounds[i]);
  // A driver update breaks three of ten.
  for (int i = 0; i < 3; ++i) Fail(boards[i], rounds[i]);
  for (int again = 0; again < 2; ++again) {
    Wait(options_.canary_retry + options_.tick);
    for (int i = 0; i < 3; ++i) Fail(boards[i], OneAssigned(boards[i]));
  }
  int quarantined = 0;
  for (int i = 0; i < 10; ++i) {
    quarantined += Trust(absl::StrCat("dx", i)) == v1::TRUST_QUARANTINED;
  }
  EXPECT_EQ(quarantined, 1) << "a tenth of ten";
  EXPECT_THAT(Events(""), ElementsAre("stopped"));
  Submit(server, {MakeWork(7, 0)});
  Wait(absl::Seconds(1));
  for (SessionId board : boards) {
    for (const auto& a : Assigned(board)) EXPECT_TRUE(IsCanary(a));
  }
  EXPECT_THAT(WaitReason(server),
              HasSubstr("no work for znver4-2c: more than 1 of 10 znver4-2c "
                        "boards would be quarantined within 10 min"));
  // An operator lifts it: every board is proven first.
  v1::ControlDevicesRequest release;
  release.mutable_devices()->set_device_class(kClass);
  release.set_command(v1::DEVICE_COMMAND_RELEASE);
  release.set_by("ann");
  // A command that cannot be kept changes nothing.
  store_.error = absl::ResourceExhaustedError("disk full");
  EXPECT_FALSE(core_->ControlDevices(release).ok());
  store_.error = absl::OkStatus();
  EXPECT_THAT(Events(""), ElementsAre("stopped"));
  ASSERT_TRUE(core_->ControlDevices(release).ok());
  Drain();
  EXPECT_THAT(Events(""), ElementsAre("stopped", "goes on"));
  const v1::Assignment round = OneAssigned(boards[9]);
  EXPECT_TRUE(IsCanary(round));
  Pass(boards[9], round);
  EXPECT_EQ(OneAssigned(boards[9]).assignment_id(), "log1/7/0/0");
}

TEST_F(CanaryTest, ARoundThatIsLostOrNeverEndsIsNoPass) {
  AttachWithCanaries();
  SessionId board = ConnectBoard("1");
  v1::Assignment round = OneAssigned(board);
  Accept(board, round);
  // A restarted agent does not have it any more: once again.
  Disconnect(board);
  board = Connect(MakeHello("a1", {MakeDevice("d1")}, "i2"));
  Wait(absl::Seconds(2));
  round = OneAssigned(board);
  Accept(board, round);
  for (int i = 0; i < 12; ++i) {
    Wait(absl::Seconds(10));
    Beat(board, {round.assignment_id()});
  }
  EXPECT_THAT(Cancelled(board), ElementsAre(round.assignment_id()));
  EXPECT_EQ(Status("d1").standing().canary_failures(), 1);
}

TEST_F(CanaryTest, MoreThanAClassMayHaveAreDroppedAndTheServerStays) {
  const StreamId server = Attach();
  std::vector<v1::Canary> many;
  for (int i = 0; i < 100; ++i) {
    many.push_back(MakeCanary(absl::StrCat("c", i)));
  }
  Offer(server, many);
  EXPECT_FALSE(servers_[server].closed);
  const SessionId board = ConnectBoard("1");
  EXPECT_EQ(OneAssigned(board).trials_size(), 4);
}

TEST_F(CanaryTest, AFullSpoolIsNoReasonToGoUnproven) {
  const StreamId server = AttachWithCanaries();
  const SessionId board = ConnectBoard("1");
  for (int i = 0; i < 10; ++i) {
    const v1::Assignment round = OneAssigned(board);
    v1::AgentMessage message;
    v1::AssignmentReply* reply = message.mutable_assignment_reply();
    reply->set_assignment_id(round.assignment_id());
    reply->set_lease_epoch(round.lease_epoch());
    reply->set_reason("the result spool is 90 % full");
    Say(board, message);
    Beat(board);
    Wait(options_.canary_retry + options_.tick);
    Beat(board);
  }
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment round = OneAssigned(board);
  ASSERT_TRUE(IsCanary(round)) << "it still has to prove itself";
  Pass(board, round);
  EXPECT_EQ(OneAssigned(board).assignment_id(), "log1/7/0/0");
}

TEST_F(CanaryTest, BadCanariesAreRefused) {
  const StreamId server = Attach();
  Offer(server, {MakeCanary("")});
  EXPECT_THAT(std::string(servers_[server].closed->message()),
              HasSubstr("must have a name"));
  EXPECT_THAT(std::string(servers_[Attach("~canary")].closed->message()),
              HasSubstr("begins with ~"));
}

}  // namespace
}  // namespace regatta
