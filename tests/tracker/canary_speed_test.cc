// Canaries: what counts as slow, and when it is the machine's load instead.
#include "tests/tracker/canary_fixture.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

}  // namespace
}  // namespace regatta
