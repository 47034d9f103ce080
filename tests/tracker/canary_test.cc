// Canaries: boards are proven before they get the work of jobs, and by the same
// kernels again and again.
#include "tests/tracker/core_fixture.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CanaryTest : public CoreTest {
 protected:
  static v1::Canary MakeCanary(const std::string& name,
                               const std::string& target = "cpu x86_64") {
    v1::Canary canary;
    canary.set_name(name);
    v1::TrialSpec& trial = *canary.mutable_trial();
    trial.set_workload("workload of " + name);
    trial.set_device_class(kClass);
    trial.set_target(target);
    trial.set_compiler_version(kCompiler);
    trial.mutable_schedule()->set_space("cpu");
    trial.mutable_schedule()->set_space_version(1);
    trial.mutable_schedule()->set_text("default");
    return canary;
  }
  void Offer(StreamId server, const std::vector<v1::Canary>& canaries) {
    v1::DispatchRequest request;
    for (const auto& canary : canaries) {
      *request.mutable_canaries()->add_canaries() = canary;
    }
    Ask(server, request);
  }
  // A server that offers two canaries.
  StreamId AttachWithCanaries() {
    const StreamId server = Attach();
    Offer(server, {MakeCanary("compute"), MakeCanary("bandwidth")});
    return server;
  }
  static v1::SpooledResult Timed(const v1::Assignment& assignment, int index,
                                 int64_t ns) {
    v1::SpooledResult spooled =
        MakeResult(assignment, index, index + 1 == assignment.trials_size());
    v1::Block& block = *spooled.mutable_result()->add_blocks();
    block.set_calls(10);
    block.set_elapsed_ns(10 * ns);
    return spooled;
  }
  // Each of the round's kernels takes `ns`.
  void Pass(SessionId board, const v1::Assignment& round, int64_t ns = 1000) {
    for (int i = 0; i < round.trials_size(); ++i) {
      SendResults(board, {Timed(round, i, ns)});
    }
  }
  void Fail(SessionId board, const v1::Assignment& round,
            v1::Outcome outcome = v1::OUTCOME_WRONG_RESULT) {
    for (int i = 0; i < round.trials_size(); ++i) {
      SendResults(
          board, {MakeResult(round, i, i + 1 == round.trials_size(), outcome)});
    }
  }
  static bool IsCanary(const v1::Assignment& assignment) {
    return assignment.assignment_id().starts_with("~canary/");
  }
  // As Pass, with so many processors busy meanwhile, the canary's own included.
  void PassBeside(SessionId board, const v1::Assignment& round, int64_t ns,
                  double busy) {
    for (int i = 0; i < round.trials_size(); ++i) {
      v1::SpooledResult result = Timed(round, i, ns);
      v1::SensorReading& reading =
          *result.mutable_result()->mutable_environment()->add_sensors();
      reading.set_name("busy_processors");
      reading.set_after(busy);
      SendResults(board, {std::move(result)});
    }
  }
  // Board "1" with a median of 1000 ns, to be proven once more.
  SessionId ProvenBoard() {
    const SessionId board = ConnectBoard("1");
    for (int i = 0; i < 3; ++i) {
      Pass(board, OneAssigned(board), 1000);
      Control(v1::DEVICE_COMMAND_MAINTENANCE, "d1");
      Control(v1::DEVICE_COMMAND_RESUME, "d1");
    }
    return board;
  }
  // The next round, after the wait between two of them.
  v1::Assignment NextRound(SessionId board) {
    Wait(options_.canary_retry + options_.tick);
    const v1::Assignment round = OneAssigned(board);
    EXPECT_TRUE(IsCanary(round)) << round.assignment_id();
    return round;
  }
  std::vector<std::string> Events(const std::string& id) {
    std::vector<std::string> what;
    v1::DeviceHistoryRequest request;
    if (id.empty()) {
      request.mutable_devices()->set_device_class(kClass);
    } else {
      request.mutable_devices()->add_device_ids(id);
    }
    const auto history = core_->DeviceHistory(request);
    for (const auto& event : history->events()) {
      if (event.device_id() == id) what.push_back(event.what());
    }
    return what;
  }
  void Control(v1::DeviceCommand command, const std::string& id) {
    v1::ControlDevicesRequest request;
    request.mutable_devices()->add_device_ids(id);
    request.set_command(command);
    request.set_by("ann");
    request.set_reason("test");
    ASSERT_TRUE(core_->ControlDevices(request).ok());
    Drain();
  }
};

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

TEST_F(CanaryTest, ASlowerBoardIsQuarantinedOnlyWhereAnotherIsWell) {
  AttachWithCanaries();
  const SessionId one = ConnectBoard("1");
  const SessionId two = ConnectBoard("2");
  // Three passes make a median.
  for (int i = 0; i < 3; ++i) {
    if (i > 0) {
      Control(v1::DEVICE_COMMAND_MAINTENANCE, "d1");
      Control(v1::DEVICE_COMMAND_RESUME, "d1");
    }
    Pass(one, OneAssigned(one), 1000);
  }
  Pass(two, OneAssigned(two), 1000);
  Control(v1::DEVICE_COMMAND_MAINTENANCE, "d1");
  Control(v1::DEVICE_COMMAND_RESUME, "d1");
  // 5 % slower is allowed.
  Pass(one, OneAssigned(one), 1050);
  EXPECT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
  Control(v1::DEVICE_COMMAND_MAINTENANCE, "d1");
  Control(v1::DEVICE_COMMAND_RESUME, "d1");
  Pass(one, OneAssigned(one), 1060);
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
  EXPECT_THAT(Status("d1").standing().trust_standing().reason(),
              HasSubstr("6.0 % slower than the board's median, 5.0 % are "
                        "allowed"));
  Pass(one, NextRound(one), 1060);
  Pass(one, NextRound(one), 1060);
  EXPECT_EQ(Trust("d1"), v1::TRUST_QUARANTINED);
}

TEST_F(CanaryTest, TheOnlyBoardOfAClassGetsANewMedian) {
  AttachWithCanaries();
  const SessionId board = ConnectBoard("1");
  for (int i = 0; i < 3; ++i) {
    if (i > 0) {
      Control(v1::DEVICE_COMMAND_MAINTENANCE, "d1");
      Control(v1::DEVICE_COMMAND_RESUME, "d1");
    }
    Pass(board, OneAssigned(board), 1000);
  }
  Control(v1::DEVICE_COMMAND_MAINTENANCE, "d1");
  Control(v1::DEVICE_COMMAND_RESUME, "d1");
  Pass(board, OneAssigned(board), 1500);
  Pass(board, NextRound(board), 1500);
  Pass(board, NextRound(board), 1500);
  EXPECT_EQ(Events("d1").back(), "drifted");
  Pass(board, NextRound(board), 1500);
  EXPECT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
}

TEST_F(CanaryTest, SlowOnABusyMachineIsTriedAgainWhenItIsQuiet) {
  AttachWithCanaries();
  const SessionId board = ProvenBoard();
  const v1::Trust trust = Trust("d1");
  PassBeside(board, OneAssigned(board), 1500, /*busy=*/2.4);
  EXPECT_EQ(Trust("d1"), trust);
  EXPECT_EQ(Status("d1").standing().canary_failures(), 0);
  EXPECT_EQ(Events("d1").back(), "canary disturbed");
  PassBeside(board, NextRound(board), 1000, /*busy=*/1);
  EXPECT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
  EXPECT_EQ(Status("d1").standing().canaries_owed(), 0);
}

TEST_F(CanaryTest, SlowOnAQuietMachineIsNotExcused) {
  AttachWithCanaries();
  const SessionId board = ProvenBoard();
  // Its own processor, and half of another.
  PassBeside(board, OneAssigned(board), 1500, /*busy=*/1.5);
  EXPECT_EQ(Status("d1").standing().canary_failures(), 1);
}

TEST_F(CanaryTest, WrongOnABusyMachineIsNotExcused) {
  AttachWithCanaries();
  const SessionId board = ProvenBoard();
  const v1::Assignment round = OneAssigned(board);
  v1::SpooledResult result =
      MakeResult(round, 0, /*last=*/false, v1::OUTCOME_WRONG_RESULT);
  v1::SensorReading& reading =
      *result.mutable_result()->mutable_environment()->add_sensors();
  reading.set_name("busy_processors");
  reading.set_after(2);
  SendResults(board, {std::move(result)});
  PassBeside(board, round, 1500, /*busy=*/2);
  EXPECT_EQ(Status("d1").standing().canary_failures(), 1);
}

// The waits are 2, 4, 8, 16 and 32 s; the sixth round counts.
TEST_F(CanaryTest, AMachineThatIsNeverQuietIsSlow) {
  AttachWithCanaries();
  const SessionId board = ProvenBoard();
  v1::Assignment round = OneAssigned(board);
  for (const int wait : {2, 4, 8, 16, 32}) {
    PassBeside(board, round, 1500, /*busy=*/2);
    EXPECT_EQ(Status("d1").standing().canary_failures(), 0);
    for (int s = 1; s < wait; ++s) {
      Wait(absl::Seconds(1));
      Beat(board);
    }
    EXPECT_THAT(Assigned(board), IsEmpty()) << "before " << wait << " s";
    Wait(absl::Seconds(1) + options_.tick);
    round = OneAssigned(board);
  }
  PassBeside(board, round, 1500, /*busy=*/2);
  EXPECT_EQ(Status("d1").standing().canary_failures(), 1);
  EXPECT_THAT(Status("d1").standing().trust_standing().reason(),
              HasSubstr("50.0 % slower than the board's median, 5.0 % are "
                        "allowed, while 1.0 processors were busy with "
                        "something else"));
}

TEST_F(CanaryTest, TimesAreKeptOverARestartOfTheTracker) {
  AttachWithCanaries();
  SessionId board = ConnectBoard("1");
  for (int i = 0; i < 3; ++i) {
    if (i > 0) {
      Control(v1::DEVICE_COMMAND_MAINTENANCE, "d1");
      Control(v1::DEVICE_COMMAND_RESUME, "d1");
    }
    Pass(board, OneAssigned(board), 1000);
  }
  Wait(absl::Seconds(1));
  Restart();
  AttachWithCanaries();
  board = ConnectBoard("1");
  EXPECT_EQ(Trust("d1"), v1::TRUST_HEALTHY);
  EXPECT_THAT(Assigned(board), IsEmpty()) << "proven before the restart";
  Control(v1::DEVICE_COMMAND_MAINTENANCE, "d1");
  Control(v1::DEVICE_COMMAND_RESUME, "d1");
  Pass(board, OneAssigned(board), 1500);
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
}

TEST_F(CanaryTest, NoClockUnderControlAndANoisyBoardGetMoreRoom) {
  v1::DeviceInfo info = MakeDevice("d1");
  v1::TrialResult result;
  result.set_outcome(v1::OUTCOME_OK);
  result.mutable_spec()->set_trial_id("~canary/d1/1-1/compute");
  const auto judge = [&](int64_t ns, v1::DeviceStanding standing) {
    result.set_time_ns(ns);
    return JudgeCanary(result, info, &standing).verdict;
  };
  v1::DeviceStanding standing;
  for (int i = 0; i < 3; ++i) {
    result.set_time_ns(1000);
    JudgeCanary(result, info, &standing);
  }
  EXPECT_EQ(judge(1050, standing), CanaryVerdict::kPassed);
  EXPECT_EQ(judge(1051, standing), CanaryVerdict::kSlow);
  EXPECT_EQ(judge(500, standing), CanaryVerdict::kPassed)
      << "faster is no fault";
  info.set_health("ok; 2 measuring sessions closed by drift");
  EXPECT_EQ(judge(1051, standing), CanaryVerdict::kSlow)
      << "as agents of the release before say it";
  info.set_health("uncontrolled: governor unknown");
  EXPECT_EQ(judge(1100, standing), CanaryVerdict::kPassed);
  EXPECT_EQ(judge(1101, standing), CanaryVerdict::kSlow);
  info.set_has_noise_floor(true);
  info.set_noise_floor(0.2);
  EXPECT_EQ(judge(1200, standing), CanaryVerdict::kPassed);
  EXPECT_EQ(judge(1201, standing), CanaryVerdict::kSlow);
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
