// Power hooks: what is sent when, and what proves a cycle.
#include "tests/tracker/power_fixture.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(PowerTest, ANewBootIdProvesACycleAndNothingElseDoes) {
  const StreamId server = Attach();
  const SessionId board = Boot("1", 1);
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment assignment = OneAssigned(board);
  Accept(board, assignment);
  ASSERT_TRUE(Cycle("d1").ok());
  EXPECT_THAT(Sent(), ElementsAre("d1 cycle"));
  EXPECT_THAT(Cancelled(board), SizeIs(1));
  Done("d1");
  // The hook says yes; the board has not moved: sent again every 30 s.
  for (int i = 0; i < 3; ++i) {
    Wait(absl::Seconds(29));
    Beat(board);
    EXPECT_THAT(Sent(), IsEmpty());
    EXPECT_THAT(Assigned(board), IsEmpty()) << "its power is about to go";
    Wait(absl::Seconds(1));
    EXPECT_THAT(Sent(), ElementsAre("d1 cycle"));
    Done("d1");
  }
  Disconnect(board);
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_REBOOTING);
  const SessionId back = Boot("1", 2);
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(OneAssigned(back).attempt(), 1) << "its work was taken, not lost";
  Wait(absl::Minutes(10));
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
}

TEST_F(PowerTest, ABoardThatDoesNotComeBackIsBroken) {
  const SessionId board = Boot("1", 1);
  ASSERT_TRUE(Cycle("d1").ok());
  Disconnect(board);
  Done("d1");
  Wait(absl::Seconds(299));
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_REBOOTING);
  EXPECT_NE(Trust("d1"), v1::TRUST_BROKEN);
  Wait(absl::Seconds(2));
  EXPECT_EQ(Trust("d1"), v1::TRUST_BROKEN);
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_LOST);
  // The second one never ended.
  EXPECT_THAT(Sent(), ElementsAre("d1 cycle", "d1 cycle"));
  EXPECT_EQ(announced_.back().what(), "broken");
  // Only a person believes in it again.
  Boot("1", 2);
  EXPECT_EQ(Trust("d1"), v1::TRUST_BROKEN);
  ASSERT_TRUE(Switch(v1::DEVICE_COMMAND_RELEASE, "d1").ok());
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
}

TEST_F(PowerTest, ABootBeforeTheLastStepProvesNothing) {
  SessionId board = Boot("3", 1);
  ASSERT_TRUE(Cycle("d3").ok());
  EXPECT_THAT(Sent(), ElementsAre("d3 off"));
  // It had rebooted by itself a moment before.
  Disconnect(board);
  board = Boot("3", 2);
  Done("d3");
  Disconnect(board);
  Wait(absl::Seconds(10));
  EXPECT_THAT(Sent(), ElementsAre("d3 on"));
  Done("d3");
  Boot("3", 3);
  Wait(absl::Minutes(10));
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_NE(Trust("d3"), v1::TRUST_BROKEN);
}

TEST_F(PowerTest, ADeviceBesideOneThatIsSwitchedGetsNoWorkEither) {
  const StreamId server = Attach();
  const auto boot = [&](int n) {
    v1::Hello hello = MakeHello("a3", {MakeDevice("d3"), MakeDevice("d9")},
                                absl::StrCat("i", n));
    hello.set_boot_id(absl::StrCat("boot ", n));
    return Connect(hello);
  };
  SessionId board = boot(1);
  ASSERT_TRUE(Cycle("d3").ok());
  EXPECT_THAT(Sent(), ElementsAre("d3 off"));
  // It had rebooted by itself a moment before.
  Disconnect(board);
  board = boot(2);
  Submit(server, {MakeWork(7, 0), MakeWork(7, 1)});
  EXPECT_THAT(Assigned(board), IsEmpty()) << "its power is about to go";
  Done("d3");
  Disconnect(board);
  Wait(absl::Seconds(10));
  EXPECT_THAT(Sent(), ElementsAre("d3 on"));
  Done("d3");
  board = boot(3);
  EXPECT_THAT(Assigned(board), SizeIs(2));
}

TEST_F(PowerTest, WhatIsOnIsNotSwitchedOnNorWhatAnotherReservedCycled) {
  const SessionId board = Boot("1", 1);
  EXPECT_THAT(std::string(Switch(v1::DEVICE_COMMAND_POWER_ON, "d1").message()),
              HasSubstr("d1 is online"));
  EXPECT_THAT(Sent(), IsEmpty());
  v1::ControlDevicesRequest reserve;
  reserve.mutable_devices()->add_device_ids("d1");
  reserve.set_command(v1::DEVICE_COMMAND_RESERVE);
  reserve.set_reason("debug");
  reserve.set_by("bob");
  ASSERT_TRUE(core_->ControlDevices(reserve).ok());
  EXPECT_THAT(std::string(Cycle("d1").message()), HasSubstr("release it"));
  EXPECT_THAT(Sent(), IsEmpty());
  Beat(board);
}

TEST_F(PowerTest, OneUnitIsAskedForOneThingAtATime) {
  Boot("1", 1);
  Boot("2", 1);
  Boot("3", 1);
  ASSERT_TRUE(Cycle("d1").ok());
  ASSERT_TRUE(Cycle("d2").ok());
  ASSERT_TRUE(Cycle("d3").ok());
  EXPECT_THAT(Sent(), ElementsAre("d1 cycle", "d3 off"));
  Wait(absl::Seconds(5));
  EXPECT_THAT(Sent(), IsEmpty());
  Done("d1", absl::UnavailableError("pdu: no session"));
  EXPECT_THAT(Sent(), ElementsAre("d2 cycle"));
  EXPECT_EQ(announced_.back().what(), "power hook failed");
  // Without a cycle of its own: off, ten seconds, on.
  Done("d3");
  Wait(absl::Seconds(9.5));
  EXPECT_THAT(Sent(), IsEmpty());
  Wait(absl::Seconds(1));
  EXPECT_THAT(Sent(), ElementsAre("d3 on"));
}

// What a unit has to do for others is not its boards' time.
TEST_F(PowerTest, ABoardIsGivenUpForWhatItWasSentOnly) {
  const StreamId server = Attach();
  Boot("1", 1);
  const SessionId board = Boot("2", 1);
  ASSERT_TRUE(Cycle("d1").ok());
  ASSERT_TRUE(Cycle("d2").ok());
  EXPECT_THAT(Sent(), ElementsAre("d1 cycle"));
  Submit(server, {MakeWork(7, 0)});
  for (int i = 0; i < 35; ++i) {
    Wait(absl::Seconds(10));
    Beat(board);
  }
  EXPECT_EQ(Trust("d1"), v1::TRUST_BROKEN);
  EXPECT_EQ(Trust("d2"), v1::TRUST_UNKNOWN) << "nothing was sent to it";
  EXPECT_THAT(Assigned(board), IsEmpty()) << "its power is about to go";
  Done("d1");
  EXPECT_THAT(Sent(), ElementsAre("d2 cycle"));
  Done("d2");
  Disconnect(board);
  Wait(absl::Seconds(299));
  EXPECT_EQ(Status("d2").presence(), v1::PRESENCE_REBOOTING);
  EXPECT_EQ(Trust("d2"), v1::TRUST_UNKNOWN);
  Wait(absl::Seconds(2));
  EXPECT_EQ(Trust("d2"), v1::TRUST_BROKEN);
}

TEST_F(PowerTest, TwoCyclesAnHourAndSixADay) {
  int boot = 1;
  Boot("1", boot);
  int done = 0;
  for (int hour = 0; hour < 4; ++hour) {
    for (int i = 0; i < 3; ++i) {
      const absl::Status status = Cycle("d1");
      if (!status.ok()) {
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
        continue;
      }
      ++done;
      Done("d1");
      Boot("1", ++boot);
    }
    EXPECT_EQ(done, std::min(6, 2 * (hour + 1)));
    clock_.Advance(absl::Hours(1) + absl::Minutes(1));
    core_->Tick();
    Drain();
    Boot("1", boot);
  }
  // A restart of the tracker does not make it forget.
  core_->Tick();
  Restart();
  Boot("1", boot);
  EXPECT_EQ(Cycle("d1").code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(PowerTest, WhatABoardHasNoHookForIsRefused) {
  Boot("9", 1);
  EXPECT_THAT(std::string(Cycle("d9").message()),
              HasSubstr("device d9 has no power hook"));
  Boot("1", 1);
  ASSERT_TRUE(Cycle("d1").ok());
  EXPECT_THAT(std::string(Cycle("d1").message()),
              HasSubstr("being switched already"));
}

TEST_F(PowerTest, WorkThatWaitsForASwitchedBoardIsToldSo) {
  const StreamId server = Attach();
  const SessionId board = Boot("1", 1);
  ASSERT_TRUE(Cycle("d1").ok());
  Submit(server, {MakeWork(7, 0)});
  Wait(absl::Seconds(2));
  EXPECT_THAT(Assigned(board), IsEmpty());
  EXPECT_EQ(WaitReason(server),
            "1 of 1 znver4-2c board kept from work while its power is being "
            "switched");
}

TEST_F(PowerTest, ABoardThatIsSwitchedOffIsInMaintenance) {
  Boot("1", 1);
  ASSERT_TRUE(Switch(v1::DEVICE_COMMAND_POWER_OFF, "d1").ok());
  EXPECT_THAT(Sent(), ElementsAre("d1 off"));
  EXPECT_EQ(Status("d1").state(), "maintenance");
  Done("d1");
  Wait(absl::Minutes(10));
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_NE(Trust("d1"), v1::TRUST_BROKEN);
}

// Its agent or its cable was away, not its power.
TEST_F(PowerTest, AnAgentThatIsBackProvesThatItsBoardIsOn) {
  const StreamId server = Attach();
  Disconnect(Boot("1", 1));
  Boot("2", 1);
  Wait(absl::Seconds(61));
  // The unit is busy with another board: nothing is sent for this one.
  ASSERT_TRUE(Cycle("d2").ok());
  ASSERT_TRUE(Switch(v1::DEVICE_COMMAND_POWER_ON, "d1").ok());
  EXPECT_THAT(Sent(), ElementsAre("d2 cycle"));
  SessionId board = Boot("1", 1);
  EXPECT_EQ(announced_.back().what(), "powered");
  Done("d2");
  Boot("2", 2);
  EXPECT_THAT(Sent(), IsEmpty());
  Submit(server, {MakeWork(7, 0), MakeWork(7, 1)});
  EXPECT_THAT(Assigned(board), SizeIs(1));

  Disconnect(board);
  Wait(absl::Seconds(61));
  ASSERT_TRUE(Switch(v1::DEVICE_COMMAND_POWER_ON, "d1").ok());
  EXPECT_THAT(Sent(), ElementsAre("d1 on"));
  Done("d1");
  // The same boot as before.
  board = Boot("1", 1);
  for (int i = 0; i < 40; ++i) {
    Wait(absl::Seconds(9));
    Beat(board);
  }
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_NE(Trust("d1"), v1::TRUST_BROKEN);
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_ONLINE);
}

TEST_F(PowerTest, ATrackerThatStoodStillGivesItsBoardsThatMuchLonger) {
  const SessionId board = Boot("1", 1);
  ASSERT_TRUE(Cycle("d1").ok());
  EXPECT_THAT(Sent(), ElementsAre("d1 cycle"));
  Done("d1");
  Disconnect(board);
  const SessionId other = Boot("2", 1);
  v1::AgentMessage message;
  message.mutable_leaving()->set_returns_within_ms(60'000);
  Say(other, message);
  Disconnect(other);
  Wait(absl::Seconds(20));
  // Its machine sleeps; the boards' Hellos are read after the first tick.
  clock_.Advance(absl::Minutes(10));
  core_->Tick();
  Drain();
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_REBOOTING);
  EXPECT_EQ(Status("d2").presence(), v1::PRESENCE_REBOOTING);
  Boot("1", 2);
  Boot("2", 2);
  Wait(absl::Minutes(6));
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
  for (const v1::DeviceEvent& event : store_.events) {
    EXPECT_NE(event.reason(), "unannounced") << event.device_id();
  }
}

TEST_F(PowerTest, ADeviceThatIsGoneAfterItsCycleIsForgottenWithIt) {
  options_.fleet.auto_approve.all = false;
  options_.fleet.boards["d1-cuda0"].power = Hook("pdu");
  const auto boot = [&](int n, const std::vector<v1::DeviceInfo>& devices) {
    v1::Hello hello = MakeHello("a1", devices, absl::StrCat("i", n));
    hello.set_boot_id(absl::StrCat("boot ", n));
    return Connect(hello);
  };
  for (const bool restarts : {false, true}) {
    store_ = MemoryFleetStore();
    Reconfigure();
    const SessionId board = boot(1, {MakeDevice("d1"), MakeDevice("d1-cuda0")});
    ASSERT_EQ(Trust("d1-cuda0"), v1::TRUST_PENDING);
    ASSERT_TRUE(Cycle("d1-cuda0").ok());
    EXPECT_THAT(Sent(), ElementsAre("d1-cuda0 cycle"));
    Disconnect(board);
    // Its GPU does not come up any more, and nobody has decided anything of it.
    boot(2, {MakeDevice("d1")});
    Boot("2", 1);
    ASSERT_TRUE(Cycle("d2").ok());
    EXPECT_THAT(Sent(), IsEmpty()) << "the unit is busy until its command ends";
    Done("d1-cuda0");
    EXPECT_THAT(Sent(), ElementsAre("d2 cycle"));
    Done("d2");
    Boot("2", 2);
    Wait(options_.tick);
    if (restarts) Restart();
    Wait(absl::Minutes(6));
    EXPECT_THAT(Sent(), IsEmpty());
    EXPECT_EQ(Trust("d1"), v1::TRUST_PENDING);
    EXPECT_EQ(Trust("d2"), v1::TRUST_PENDING);
  }
}

TEST_F(PowerTest, ABoardThatIsSwitchedSaysSo) {
  Boot("1", 1);
  EXPECT_EQ(Status("d1").obstacle(), "");
  ASSERT_TRUE(Cycle("d1").ok());
  Done("d1", absl::UnavailableError("pdu: no session"));
  EXPECT_THAT(Status("d1").obstacle(),
              HasSubstr("while its power is being switched"));
  Wait(absl::Seconds(30));
  Done("d1");
  Boot("1", 2);
  EXPECT_EQ(Status("d1").obstacle(), "");
}

TEST_F(PowerTest, ARetiredBoardIsSwitchedOffAndStaysRetired) {
  Boot("1", 1);
  ASSERT_TRUE(Switch(v1::DEVICE_COMMAND_RETIRE, "d1").ok());
  Wait(options_.tick);
  ASSERT_TRUE(Switch(v1::DEVICE_COMMAND_POWER_OFF, "d1").ok());
  EXPECT_THAT(Sent(), ElementsAre("d1 off"));
  EXPECT_EQ(Status("d1").state(), "retired");
}

TEST_F(PowerTest, ABoardThatNobodyApprovedIsNotApprovedByItsPower) {
  options_.fleet.auto_approve.all = false;
  Reconfigure();
  const SessionId board = Boot("1", 1);
  ASSERT_EQ(Trust("d1"), v1::TRUST_PENDING);
  ASSERT_TRUE(Cycle("d1").ok());
  Disconnect(board);
  Done("d1");
  Wait(PowerBook::kGiveUp + options_.tick);
  EXPECT_EQ(announced_.back().what(), "broken");
  EXPECT_EQ(Trust("d1"), v1::TRUST_PENDING);
  ASSERT_TRUE(Switch(v1::DEVICE_COMMAND_RELEASE, "d1").ok());
  Boot("1", 2);
  EXPECT_EQ(Trust("d1"), v1::TRUST_PENDING);
  ASSERT_TRUE(Switch(v1::DEVICE_COMMAND_APPROVE, "d1").ok());
  EXPECT_EQ(Trust("d1"), v1::TRUST_UNKNOWN);
}

TEST_F(PowerTest, LabelsOfTheFileComeWithNewBoardsAndApproveThem) {
  options_.fleet.auto_approve = {.labels = {"rack=2"}};
  options_.fleet.boards["d5"].labels["rack"] = "2";
  options_.fleet.boards["d6"].labels["rack"] = "3";
  Reconfigure();
  Boot("5", 1);
  Boot("6", 1);
  EXPECT_EQ(Status("d5").standing().labels().at("rack"), "2");
  EXPECT_EQ(Trust("d5"), v1::TRUST_UNKNOWN);
  EXPECT_EQ(Trust("d6"), v1::TRUST_PENDING);
}

}  // namespace
}  // namespace regatta
