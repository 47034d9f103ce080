// The operator's hold on devices: approval, drain, reservation, quarantine.
#include "absl/strings/match.h"
#include "tests/tracker/control_fixture.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ControlTest, ANewBoardGetsNothingBeforeItIsApproved) {
  options_.fleet.auto_approve.all = false;
  Reconfigure();
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  Wait(absl::Seconds(1));
  EXPECT_THAT(Assigned(board), IsEmpty());
  EXPECT_EQ(Status("d1").state(), "pending");
  EXPECT_EQ(WaitReason(server), "1 of 1 znver4-2c board waiting for approval");
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_APPROVE, "d1").ok());
  EXPECT_THAT(Assigned(board), SizeIs(1));
  EXPECT_EQ(Standing("d1").trust(), v1::TRUST_UNKNOWN);
  EXPECT_EQ(Standing("d1").trust_standing().by(), "ann");
  EXPECT_THAT(History("d1"),
              ElementsAre("waits for approval by tracker", "approve by ann"));
}

TEST_F(ControlTest, ApprovalOutlivesTheTracker) {
  options_.fleet.auto_approve.all = false;
  Reconfigure();
  ConnectBoard("1");
  ConnectBoard("2");
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_APPROVE, "d1").ok());
  Wait(absl::Seconds(1));
  Restart();
  ConnectBoard("1");
  ConnectBoard("2");
  EXPECT_EQ(Standing("d1").trust(), v1::TRUST_UNKNOWN);
  EXPECT_EQ(Standing("d2").trust(), v1::TRUST_PENDING);
  EXPECT_THAT(History("d1"), SizeIs(2));
}

TEST_F(ControlTest, ABoardUnderAnotherAgentIsApprovedAnew) {
  options_.fleet.auto_approve.all = false;
  Reconfigure();
  const SessionId first = ConnectBoard("1");
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_APPROVE, "d1").ok());
  Disconnect(first);
  Connect(MakeHello("stranger", {MakeDevice("d1")}));
  EXPECT_EQ(Standing("d1").trust(), v1::TRUST_PENDING);
  EXPECT_THAT(Standing("d1").trust_standing().reason(), HasSubstr("stranger"));
}

TEST_F(ControlTest, ApprovalIsAutomaticByClassAndOnThisMachine) {
  options_.fleet.auto_approve.all = false;
  options_.fleet.auto_approve.local = true;
  options_.fleet.auto_approve.classes = {"rpi5"};
  Reconfigure();
  Connect(MakeHello("a1", {MakeDevice("d1")}));
  Connect(MakeHello("a2", {MakeDevice("d2", 1, "rpi5")}));
  const SessionId local{++last_id_};
  core_->SessionOpened(local, {.local = true});
  v1::AgentMessage message;
  *message.mutable_hello() = MakeHello("a3", {MakeDevice("d3")});
  Say(local, message);
  EXPECT_EQ(Standing("d1").trust(), v1::TRUST_PENDING);
  EXPECT_EQ(Standing("d2").trust(), v1::TRUST_UNKNOWN);
  EXPECT_EQ(Standing("d3").trust(), v1::TRUST_UNKNOWN);
}

TEST_F(ControlTest, AnAgentHasABoundedNumberOfDevicesOverAllItsMessages) {
  options_.fleet.auto_approve.all = false;
  Reconfigure();
  const SessionId board = Connect(MakeHello("a1", {MakeDevice("d0")}));
  for (int batch = 0; batch < 3 && !agents_[board].closed; ++batch) {
    v1::AgentMessage message;
    for (int i = 0; i < 100; ++i) {
      *message.mutable_device_update()->add_devices() =
          MakeDevice(absl::StrCat("d", batch, "-", i));
    }
    Say(board, message);
  }
  ASSERT_TRUE(agents_[board].closed);
  EXPECT_EQ(agents_[board].closed->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(core_->ListDevices().devices_size(), 201);
  // What nobody approved is not remembered when it is gone.
  Connect(MakeHello("a1", {MakeDevice("d0")}));
  Wait(options_.tick);
  EXPECT_EQ(store_.devices.size(), 1u);
}

TEST_F(ControlTest, WhatAPersonDecidedOutlivesALongAbsence) {
  const SessionId retired = ConnectBoard("1");
  const SessionId usual = ConnectBoard("2");
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RETIRE, "d1", "old").ok());
  Wait(options_.tick);
  ASSERT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_RETIRED);
  Disconnect(retired);
  Disconnect(usual);
  Wait(options_.forget_agent + absl::Hours(1));
  EXPECT_TRUE(core_->ListDevices().devices().empty());
  ConnectBoard("1");
  EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_RETIRED);
  EXPECT_TRUE(store_.devices.contains("d1"));
  EXPECT_FALSE(store_.devices.contains("d2"));
}

TEST_F(ControlTest, OnlyWhoHeldTheWorkConfirmsThatItStopped) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment held = OneAssigned(board);
  Accept(board, held);
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_MAINTENANCE, "d1", "x").ok());
  const SessionId rogue = ConnectBoard("2");
  OneAssigned(rogue);  // the work has another board now
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RESUME, "d1").ok());
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_DRAIN, "d1", "x").ok());
  GiveBack(rogue, held);
  Wait(options_.tick);
  EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_DRAINING);
  GiveBack(board, held);
  Wait(options_.tick);
  EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_MAINTENANCE);
}

TEST_F(ControlTest, ADrainedBoardEndsItsCandidateAndGivesTheRestBack) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0, /*trials=*/3)});
  const v1::Assignment assignment = OneAssigned(board);
  Accept(board, assignment);
  SendResults(board, {MakeResult(assignment, 0, /*last=*/false)});
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_DRAIN, "d1", "fan swap").ok());
  EXPECT_THAT(Drained(board), ElementsAre("d1"));
  EXPECT_THAT(Cancelled(board), IsEmpty());
  EXPECT_EQ(Status("d1").state(), "draining");
  // The second one was running; its result counts.
  SendResults(board, {MakeResult(assignment, 1, /*last=*/false)});
  GiveBack(board, assignment);
  Wait(absl::Seconds(1));
  EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_MAINTENANCE);
  EXPECT_THAT(Results(server), SizeIs(2));
  EXPECT_EQ(WaitReason(server),
            "1 of 1 znver4-2c board in maintenance by ann: fan swap");
  EXPECT_THAT(Assigned(board), IsEmpty());
  // The third goes to another board, at its first attempt.
  const v1::Assignment rest = OneAssigned(ConnectBoard("2"));
  EXPECT_EQ(rest.attempt(), 1);
  ASSERT_EQ(rest.trials_size(), 1);
  EXPECT_EQ(rest.trials(0).trial_id(), "7/0/2");
}

TEST_F(ControlTest, ADrainEndsAfterAMinuteAtTheLatest) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment assignment = OneAssigned(board);
  Accept(board, assignment);
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_DRAIN, "d1", "fan swap").ok());
  WaitBeating(board, absl::Seconds(59), {assignment.assignment_id()});
  EXPECT_EQ(Status("d1").state(), "draining");
  EXPECT_THAT(Cancelled(board), IsEmpty());
  Wait(absl::Seconds(2));
  EXPECT_THAT(Cancelled(board), ElementsAre(assignment.assignment_id()));
  // Not out before the agent has stopped it.
  EXPECT_EQ(Status("d1").state(), "draining");
  GiveBack(board, assignment);
  Wait(absl::Milliseconds(500));
  EXPECT_EQ(Status("d1").state(), "maintenance");
  EXPECT_EQ(OneAssigned(ConnectBoard("2")).attempt(), 1);
}

TEST_F(ControlTest, ADrainOfAnIdleBoardIsDoneAtOnceAndEndsWhenAsked) {
  ConnectBoard("1");
  ASSERT_TRUE(
      Control(v1::DEVICE_COMMAND_DRAIN, "d1", "fan swap", absl::Minutes(10))
          .ok());
  Wait(absl::Milliseconds(500));
  EXPECT_EQ(Status("d1").state(), "maintenance");
  Wait(absl::Minutes(9));
  EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_MAINTENANCE);
  Wait(absl::Minutes(1));
  EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_NORMAL);
  EXPECT_EQ(Standing("d1").operator_standing().by(), "tracker");
}

TEST_F(ControlTest, ADeadlineOutlivesTheTrackerAndTheWallClock) {
  ConnectBoard("1");
  ASSERT_TRUE(
      Control(v1::DEVICE_COMMAND_RESERVE, "d1", "debug", absl::Hours(1)).ok());
  Wait(absl::Minutes(30));
  Restart();
  ConnectBoard("1");
  Wait(absl::Minutes(29));
  EXPECT_EQ(Status("d1").state(), "reserved");
  Wait(absl::Minutes(2));
  EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_NORMAL);
}

TEST_F(ControlTest, AReservationPreemptsWithinTenSecondsWithoutAnAttempt) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0, /*trials=*/2)});
  const v1::Assignment assignment = OneAssigned(board);
  Accept(board, assignment);
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RESERVE, "d1", "debug").ok());
  Wait(absl::Seconds(10));
  EXPECT_THAT(Cancelled(board), ElementsAre(assignment.assignment_id()));
  GiveBack(board, assignment);
  Wait(absl::Milliseconds(500));
  const v1::DeviceStanding standing = Standing("d1");
  EXPECT_EQ(standing.operator_state(), v1::OPERATOR_STATE_RESERVED);
  // Two hours from when it was asked for, 10.5 s ago.
  EXPECT_EQ(standing.operator_standing().until_unix_ms(),
            absl::ToUnixMillis(clock_.Wall()) - 10'500 + 2 * 3'600'000);
  // What the revoked holder says afterwards is refused.
  SendResults(board, {MakeResult(assignment, 0, /*last=*/false)});
  const auto acks = Acks(board);
  ASSERT_THAT(acks, SizeIs(1));
  EXPECT_EQ(acks[0].status(), v1::ACK_STATUS_REJECTED);
  EXPECT_THAT(Results(server), IsEmpty());
  EXPECT_EQ(OneAssigned(ConnectBoard("2")).attempt(), 1);
  EXPECT_THAT(Assigned(board), IsEmpty());
}

TEST_F(ControlTest, AnAgentThatDoesNotAnswerHoldsAReservationUpFiveSeconds) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  Accept(board, OneAssigned(board));
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RESERVE, "d1", "debug").ok());
  Wait(absl::Seconds(14));
  EXPECT_EQ(Status("d1").state(), "draining");
  Wait(absl::Seconds(2));
  EXPECT_EQ(Status("d1").state(), "reserved");
}

TEST_F(ControlTest, OnlyItsHolderRenewsAReservationAndForEightHoursAtMost) {
  ConnectBoard("1");
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RESERVE, "d1", "debug").ok());
  Wait(absl::Minutes(90));
  ASSERT_TRUE(
      Control(v1::DEVICE_COMMAND_RESERVE, "d1", "debug", absl::Hours(8)).ok());
  EXPECT_EQ(Standing("d1").operator_standing().until_unix_ms(),
            absl::ToUnixMillis(clock_.Wall()) + 8 * 3'600'000);
  const absl::Status longer = Control(v1::DEVICE_COMMAND_RESERVE, "d1", "debug",
                                      absl::Hours(8) + absl::Milliseconds(1));
  EXPECT_EQ(longer.code(), absl::StatusCode::kInvalidArgument);
  v1::ControlDevicesRequest other =
      Order(v1::DEVICE_COMMAND_RESERVE, {"d1"}, "mine");
  other.set_by("bob");
  const absl::Status refused = Control(other);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("device d1 is reserved by ann until"));
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RELEASE, "d1").ok());
  EXPECT_TRUE(Control(other).ok());
}

TEST_F(ControlTest, QuarantineStopsWhatRunsAndReleaseGivesWorkAgain) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment assignment = OneAssigned(board);
  Accept(board, assignment);
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_QUARANTINE, "d1", "odd times").ok());
  EXPECT_THAT(Cancelled(board), ElementsAre(assignment.assignment_id()));
  EXPECT_EQ(Status("d1").state(), "quarantined");
  EXPECT_EQ(Status("d1").obstacle(), "quarantined by ann: odd times");
  GiveBack(board, assignment);
  Wait(absl::Seconds(2));
  EXPECT_THAT(Assigned(board), IsEmpty());
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RELEASE, "d1").ok());
  EXPECT_EQ(OneAssigned(board).attempt(), 1);
}

TEST_F(ControlTest, MaintenanceStopsAtOnceAndARetiredBoardStaysOut) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment assignment = OneAssigned(board);
  Accept(board, assignment);
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_MAINTENANCE, "d1", "smoke").ok());
  EXPECT_THAT(Cancelled(board), ElementsAre(assignment.assignment_id()));
  EXPECT_EQ(Status("d1").state(), "maintenance");
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RETIRE, "d1", "burnt").ok());
  EXPECT_EQ(Status("d1").state(), "retired");
  const absl::Status refused =
      Control(v1::DEVICE_COMMAND_RESERVE, "d1", "debug");
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("d1 is retired by ann: burnt; resume it first"));
  Disconnect(board);
  const SessionId again = ConnectBoard("1");
  EXPECT_THAT(Assigned(again), IsEmpty());
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RESUME, "d1").ok());
  EXPECT_THAT(Assigned(again), SizeIs(1));
}

TEST_F(ControlTest, OneDeviceOfABoardIsDrainedWithoutTheOther) {
  const StreamId server = Attach();
  const SessionId board =
      Connect(MakeHello("a1", {MakeDevice("d1"), MakeDevice("d2")}));
  Submit(server, {MakeWork(7, 0), MakeWork(7, 1)});
  ASSERT_THAT(Assigned(board), SizeIs(2));
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_MAINTENANCE, "d1", "smoke").ok());
  EXPECT_THAT(Cancelled(board), SizeIs(1));
  EXPECT_EQ(Status("d2").state(), "busy");
}

TEST_F(ControlTest, ManyAreNamedByClassAndLabels) {
  Connect(MakeHello("a1", {MakeDevice("d1"), MakeDevice("d2", 1, "rpi5"),
                           MakeDevice("d3", 1, "rpi5")}));
  v1::ControlDevicesRequest label = Order(v1::DEVICE_COMMAND_LABEL, {"d3"});
  (*label.mutable_labels())["rack"] = "2";
  ASSERT_TRUE(Control(label).ok());
  EXPECT_EQ(Standing("d3").labels().at("rack"), "2");
  v1::ControlDevicesRequest drain =
      Order(v1::DEVICE_COMMAND_DRAIN, {}, "fan swap");
  drain.mutable_devices()->set_device_class("rpi5");
  (*drain.mutable_devices()->mutable_labels())["rack"] = "2";
  ASSERT_TRUE(Control(drain).ok());
  EXPECT_EQ(Standing("d2").operator_state(), v1::OPERATOR_STATE_NORMAL);
  EXPECT_EQ(Standing("d3").operator_state(), v1::OPERATOR_STATE_DRAINING);
  drain.mutable_devices()->mutable_labels()->clear();
  ASSERT_TRUE(Control(drain).ok());
  EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_NORMAL);
  EXPECT_EQ(Standing("d2").operator_state(), v1::OPERATOR_STATE_DRAINING);
}

TEST_F(ControlTest, ACommandThatOneDeviceRefusesChangesNone) {
  ConnectBoard("1");
  ConnectBoard("2");
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RESERVE, "d2", "debug").ok());
  EXPECT_EQ(
      Control(Order(v1::DEVICE_COMMAND_DRAIN, {"d1", "d2"}, "fan swap")).code(),
      absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_NORMAL);
}

TEST_F(ControlTest, ACommandThatCannotBeStoredChangesNothing) {
  const SessionId board = ConnectBoard("1");
  Wait(absl::Seconds(1));
  store_.error = absl::ResourceExhaustedError("disk full");
  EXPECT_EQ(Control(v1::DEVICE_COMMAND_QUARANTINE, "d1", "odd").code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Standing("d1").trust(), v1::TRUST_UNKNOWN);
  store_.error = absl::OkStatus();
  const StreamId server = Attach();
  Submit(server, {MakeWork(7, 0)});
  EXPECT_THAT(Assigned(board), SizeIs(1));
}

TEST_F(ControlTest, BadCommandsNameWhatIsWrong) {
  ConnectBoard("1");
  const auto message = [&](const v1::ControlDevicesRequest& request) {
    return std::string(Control(request).message());
  };
  EXPECT_THAT(message(Order(v1::DEVICE_COMMAND_APPROVE, {})),
              HasSubstr("no device is named"));
  EXPECT_THAT(message(Order(v1::DEVICE_COMMAND_APPROVE, {"d9"})),
              HasSubstr("no device d9; there are: d1"));
  EXPECT_THAT(message(Order(v1::DEVICE_COMMAND_DRAIN, {"d1"})),
              HasSubstr("drain needs a reason"));
  EXPECT_THAT(message(Order(v1::DEVICE_COMMAND_DRAIN, {"d1"}, "   ")),
              HasSubstr("drain needs a reason"));
  EXPECT_THAT(message(Order(v1::DEVICE_COMMAND_UNSPECIFIED, {"d1"})),
              HasSubstr("command is 0"));
  EXPECT_THAT(
      message(Order(v1::DEVICE_COMMAND_APPROVE, {"d1"}, "", absl::Hours(1))),
      HasSubstr("approve takes no time"));
  EXPECT_THAT(
      message(Order(v1::DEVICE_COMMAND_DRAIN, {"d1"}, "x", -absl::Hours(1))),
      HasSubstr("drain lasts from"));
  EXPECT_THAT(message(Order(v1::DEVICE_COMMAND_DRAIN, {"d1"}, "a\nb")),
              HasSubstr("one line"));
  EXPECT_THAT(
      message(Order(v1::DEVICE_COMMAND_DRAIN, {"d1"}, std::string(501, 'x'))),
      HasSubstr("reason has 501 bytes"));
  v1::ControlDevicesRequest nobody = Order(v1::DEVICE_COMMAND_APPROVE, {"d1"});
  nobody.clear_by();
  EXPECT_THAT(message(nobody), HasSubstr("by is empty"));
  v1::ControlDevicesRequest label = Order(v1::DEVICE_COMMAND_LABEL, {"d1"});
  EXPECT_THAT(message(label), HasSubstr("label without any label"));
  (*label.mutable_labels())["a b"] = "1";
  EXPECT_THAT(message(label), HasSubstr("label 'a b' must be"));
  v1::DeviceHistoryRequest history;
  history.set_limit(-1);
  EXPECT_THAT(std::string(core_->DeviceHistory(history).status().message()),
              HasSubstr("limit is -1"));
}

TEST_F(ControlTest, HistoryIsBoundedAndGivesTheLatest) {
  ConnectBoard("1");
  for (int i = 0; i < 6; ++i) {
    v1::ControlDevicesRequest label = Order(v1::DEVICE_COMMAND_LABEL, {"d1"});
    (*label.mutable_labels())["n"] = absl::StrCat(i);
    ASSERT_TRUE(Control(label).ok());
  }
  v1::DeviceHistoryRequest request;
  request.set_limit(2);
  const auto response = core_->DeviceHistory(request);
  ASSERT_EQ(response->events_size(), 2);
  EXPECT_EQ(response->events(0).what(), "label n=4");
  EXPECT_EQ(response->events(1).what(), "label n=5");
}

TEST_F(ControlTest, AnAnnouncedRebootIsNotLostBeforeItIsDue) {
  const SessionId board = ConnectBoard("1");
  v1::AgentMessage message;
  message.mutable_leaving()->set_reason("kernel update");
  message.mutable_leaving()->set_returns_within_ms(3'600'000);
  Say(board, message);
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_ONLINE);
  Disconnect(board);
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_REBOOTING);
  // At most 300 s, whatever was announced.
  Wait(absl::Seconds(299));
  EXPECT_EQ(Status("d1").state(), "rebooting");
  Wait(absl::Seconds(2));
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_LOST);
  ConnectBoard("1");
  EXPECT_EQ(Status("d1").presence(), v1::PRESENCE_ONLINE);
}

}  // namespace
}  // namespace regatta
