// Switches of power that a restart of the tracker cut short.
#include "tests/tracker/power_fixture.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PowerRestartTest : public PowerTest {};

TEST_F(PowerRestartTest, ACycleGoesOnAfterARestartOfTheTracker) {
  const SessionId board = Boot("3", 1);
  ASSERT_TRUE(Cycle("d3").ok());
  EXPECT_THAT(Sent(), ElementsAre("d3 off"));
  Done("d3");
  Disconnect(board);
  Wait(absl::Seconds(5));
  Restart();
  Wait(options_.tick);
  EXPECT_THAT(Sent(), ElementsAre("d3 off"));
  Done("d3");
  Wait(absl::Seconds(10));
  EXPECT_THAT(Sent(), ElementsAre("d3 on"));
  Done("d3");
  Boot("3", 2);
  Wait(options_.tick);
  Restart();
  Wait(absl::Minutes(1));
  EXPECT_THAT(Sent(), IsEmpty()) << "it is proven";
}

TEST_F(PowerRestartTest, SwitchingOnGoesOnAfterARestartOfTheTracker) {
  Disconnect(Boot("1", 1));
  Wait(absl::Seconds(61));
  ASSERT_TRUE(Switch(v1::DEVICE_COMMAND_POWER_ON, "d1").ok());
  EXPECT_THAT(Sent(), ElementsAre("d1 on"));
  Wait(options_.tick);
  Restart();
  Wait(options_.tick);
  EXPECT_THAT(Sent(), ElementsAre("d1 on")) << "its hook may have been killed";
  Done("d1");
  Boot("1", 2);
  Wait(options_.tick);
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
  for (const v1::DeviceEvent& event : store_.events) {
    EXPECT_NE(event.reason(), "unannounced") << "it was awaited";
  }
  Restart();
  Wait(absl::Minutes(1));
  EXPECT_THAT(Sent(), IsEmpty()) << "it is proven";
}

TEST_F(PowerRestartTest, SwitchingOffGoesOnAfterARestartOfTheTracker) {
  Boot("1", 1);
  Boot("2", 1);
  ASSERT_TRUE(Switch(v1::DEVICE_COMMAND_POWER_OFF, "d1").ok());
  ASSERT_TRUE(Switch(v1::DEVICE_COMMAND_POWER_OFF, "d2").ok());
  EXPECT_THAT(Sent(), ElementsAre("d1 off"));
  Wait(absl::Seconds(5));
  Restart();
  Wait(options_.tick);
  // One at a time of their unit.
  EXPECT_THAT(Sent(), ElementsAre("d1 off"));
  EXPECT_THAT(Happened("d1"), ElementsAre("power_off", "power resumed"));
  EXPECT_THAT(store_.events.back().reason(),
              HasSubstr("power_off was begun 5s before the tracker was "
                        "restarted; it begins anew"));
  Done("d1");
  EXPECT_THAT(Sent(), ElementsAre("d2 off"));
  Done("d2", absl::UnavailableError("pdu: no session"));
  Wait(options_.tick);
  EXPECT_THAT(Happened("d1"),
              ElementsAre("power_off", "power resumed", "switched off"));
  EXPECT_THAT(Happened("d2"),
              ElementsAre("power_off", "power resumed", "power hook failed"));
  Restart();
  Wait(absl::Minutes(6));
  EXPECT_THAT(Sent(), IsEmpty()) << "both have ended";
  EXPECT_NE(Trust("d1"), v1::TRUST_BROKEN);
}

TEST_F(PowerRestartTest, AnOldOrderToSwitchOffIsToldAndNotCarriedOut) {
  const SessionId board = Boot("1", 1);
  ASSERT_TRUE(Switch(v1::DEVICE_COMMAND_POWER_OFF, "d1").ok());
  EXPECT_THAT(Sent(), ElementsAre("d1 off"));
  Beat(board);
  core_->Goodbye(absl::ZeroDuration());
  clock_.Advance(PowerBook::kGiveUp);
  Restart();
  Boot("1", 1);
  Wait(absl::Minutes(1));
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_THAT(Happened("d1"), ElementsAre("power_off", "power lapsed"));
  Restart();
  Wait(options_.tick);
  EXPECT_THAT(Happened("d1"), ElementsAre("power_off", "power lapsed"));
}

// The tracker was away for longer than a cycle takes, between its two steps.
TEST_F(PowerRestartTest, ABoardIsNotLeftOffByATrackerThatWasAwayForLong) {
  const SessionId board = Boot("3", 1);
  ASSERT_TRUE(Cycle("d3").ok());
  EXPECT_THAT(Sent(), ElementsAre("d3 off"));
  Done("d3");
  Disconnect(board);
  core_->Goodbye(absl::ZeroDuration());
  clock_.Advance(absl::Hours(1));
  Restart();
  Wait(PowerBook::kResend - options_.tick);
  EXPECT_THAT(Sent(), IsEmpty()) << "it may be back already";
  Wait(options_.tick);
  EXPECT_THAT(Sent(), ElementsAre("d3 off"));
  Done("d3");
  Wait(PowerBook::kOffTime);
  EXPECT_THAT(Sent(), ElementsAre("d3 on"));
  Done("d3");
  Boot("3", 2);
  Wait(absl::Minutes(6));
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_EQ(Trust("d3"), v1::TRUST_UNKNOWN);
  EXPECT_THAT(Happened("d3"),
              ElementsAre("power_cycle", "power resumed", "rebooted"));
}

TEST_F(PowerRestartTest, ABoardThatCameBackMeanwhileIsLeftAlone) {
  for (const int boot : {1, 2}) {  // also without a boot of its own
    store_ = MemoryFleetStore();
    Restart();
    const SessionId board = Boot("3", 1);
    ASSERT_TRUE(Cycle("d3").ok());
    EXPECT_THAT(Sent(), ElementsAre("d3 off"));
    Disconnect(board);
    core_->Goodbye(absl::ZeroDuration());
    clock_.Advance(absl::Hours(1));
    Restart();
    Wait(absl::Seconds(5));
    const SessionId back = Boot("3", boot);
    for (int i = 0; i < 40; ++i) {
      Wait(absl::Seconds(9));
      Beat(back);
    }
    EXPECT_THAT(Sent(), IsEmpty());
    EXPECT_EQ(Trust("d3"), v1::TRUST_UNKNOWN);
    EXPECT_EQ(Status("d3").presence(), v1::PRESENCE_ONLINE);
  }
}

TEST_F(PowerRestartTest, NobodyIsGivenUpBetweenOffAndOn) {
  Disconnect(Boot("3", 1));
  ASSERT_TRUE(Cycle("d3").ok());
  Done("d3");
  EXPECT_THAT(Sent(), ElementsAre("d3 off"));
  Wait(options_.tick);
  clock_.Advance(PowerBook::kGiveUp - absl::Seconds(5));
  Restart();
  Wait(options_.tick);
  EXPECT_THAT(Sent(), ElementsAre("d3 off"));
  Wait(PowerBook::kGiveUp + absl::Seconds(1));
  EXPECT_NE(Trust("d3"), v1::TRUST_BROKEN) << "its hook is at work";
  Done("d3");
  Wait(PowerBook::kOffTime);
  EXPECT_THAT(Sent(), ElementsAre("d3 on"));
  EXPECT_NE(Trust("d3"), v1::TRUST_BROKEN);
  Done("d3");
  Wait(options_.tick);
  EXPECT_EQ(Trust("d3"), v1::TRUST_BROKEN);
}

}  // namespace
}  // namespace regatta
