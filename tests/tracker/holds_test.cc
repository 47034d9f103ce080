// Whose hold on a device ends by whom: reservations of others, retired boards,
// two who want one board out; and boards that are kept out.
#include "tests/tracker/control_fixture.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class HoldsTest : public ControlTest {};

TEST_F(HoldsTest, AnothersReservationEndsByItsNameAndAReasonAlone) {
  ConnectBoard("1");
  ConnectBoard("2");
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RESERVE, "d1", "mine").ok());
  Wait(options_.tick);
  ASSERT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_RESERVED);
  for (const v1::DeviceCommand command :
       {v1::DEVICE_COMMAND_RESUME, v1::DEVICE_COMMAND_RELEASE}) {
    v1::ControlDevicesRequest one = Order(command, {"d1"});
    one.set_by("bob");
    const absl::Status refused = Control(one);
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("device d1 is reserved by ann until"),
                      HasSubstr("end it for them with a reason")));
    // A word about the class is not one about what somebody has of it.
    v1::ControlDevicesRequest all = Order(command, {}, "brake");
    all.mutable_devices()->set_device_class("znver4-2c");
    all.set_by("bob");
    EXPECT_TRUE(Control(all).ok());
    EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_RESERVED);
  }
  v1::ControlDevicesRequest end =
      Order(v1::DEVICE_COMMAND_RELEASE, {"d1"}, "ann is ill");
  end.set_by("bob");
  ASSERT_TRUE(Control(end).ok());
  EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_NORMAL);
  EXPECT_THAT(Standing("d1").operator_standing().reason(),
              HasSubstr("ann is ill"));
}

TEST_F(HoldsTest, ARetiredBoardComesBackByItsNameAlone) {
  const SessionId board = ConnectBoard("1");
  const SessionId other = ConnectBoard("2");
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RETIRE, "d1", "burnt").ok());
  Wait(options_.tick);
  ASSERT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_RETIRED);
  for (const v1::DeviceCommand command :
       {v1::DEVICE_COMMAND_MAINTENANCE, v1::DEVICE_COMMAND_DRAIN}) {
    EXPECT_THAT(
        std::string(Control(command, "d1", "z", absl::Seconds(2)).message()),
        HasSubstr("d1 is retired by ann: burnt; resume it first"));
  }
  v1::ControlDevicesRequest window =
      Order(v1::DEVICE_COMMAND_MAINTENANCE, {}, "window", absl::Seconds(2));
  window.mutable_devices()->set_device_class("znver4-2c");
  const auto done = core_->ControlDevices(window);
  ASSERT_TRUE(done.ok()) << done.status();
  ASSERT_EQ(done->devices_size(), 1);
  EXPECT_EQ(done->devices(0).device_id(), "d2");
  for (int i = 0; i < 5; ++i) {
    Wait(absl::Seconds(1));
    Beat(board);
    Beat(other);
  }
  window.set_command(v1::DEVICE_COMMAND_RESUME);
  window.set_reason("");
  window.set_for_ms(0);
  EXPECT_TRUE(Control(window).ok());
  EXPECT_EQ(Standing("d2").operator_state(), v1::OPERATOR_STATE_NORMAL);
  EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_RETIRED);
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_RETIRE, "d2", "old").ok());
  Wait(options_.tick);
  EXPECT_THAT(std::string(Control(window).message()),
              HasSubstr("name those that you mean by id"));
  EXPECT_TRUE(Control(v1::DEVICE_COMMAND_RESUME, "d1").ok());
  EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_NORMAL);
}

TEST_F(HoldsTest, OfTwoHoldsTheLaterEndCounts) {
  ConnectBoard("1");
  const auto by = [&](const char* who, v1::DeviceCommand command,
                      absl::Duration length) {
    v1::ControlDevicesRequest request =
        Order(command, {"d1"}, absl::StrCat("of ", who), length);
    request.set_by(who);
    const auto response = core_->ControlDevices(request);
    EXPECT_TRUE(response.ok()) << response.status();
    Drain();
    return response.ok() && response->devices(0).changed();
  };
  const auto holds = [&](const char* who, absl::Duration left) {
    const v1::Standing held = Standing("d1").operator_standing();
    EXPECT_EQ(Standing("d1").operator_state(), v1::OPERATOR_STATE_MAINTENANCE);
    EXPECT_EQ(held.by(), who);
    EXPECT_EQ(held.until_unix_ms(),
              left == absl::InfiniteDuration()
                  ? 0
                  : absl::ToUnixMillis(clock_.Wall() + left));
  };
  EXPECT_TRUE(by("ann", v1::DEVICE_COMMAND_MAINTENANCE, absl::Minutes(1)));
  EXPECT_TRUE(by("bob", v1::DEVICE_COMMAND_DRAIN, absl::Hours(3)));
  holds("bob", absl::Hours(3));
  EXPECT_FALSE(by("ann", v1::DEVICE_COMMAND_MAINTENANCE, absl::Minutes(1)));
  EXPECT_FALSE(by("ann", v1::DEVICE_COMMAND_DRAIN, absl::Minutes(1)));
  holds("bob", absl::Hours(3));
  // Who has it may shorten it.
  EXPECT_TRUE(by("bob", v1::DEVICE_COMMAND_DRAIN, absl::Minutes(2)));
  holds("bob", absl::Minutes(2));
  EXPECT_TRUE(by("ann", v1::DEVICE_COMMAND_MAINTENANCE, {}));
  EXPECT_FALSE(by("bob", v1::DEVICE_COMMAND_DRAIN, absl::Hours(1)));
  holds("ann", absl::InfiniteDuration());
}

TEST_F(HoldsTest, MaintenanceEndsADrainAtOnceAndKeepsItsLaterEnd) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment assignment = OneAssigned(board);
  Accept(board, assignment);
  ASSERT_TRUE(Control(v1::DEVICE_COMMAND_DRAIN, "d1", "fan swap").ok());
  v1::ControlDevicesRequest smoke =
      Order(v1::DEVICE_COMMAND_MAINTENANCE, {"d1"}, "smoke", absl::Minutes(1));
  smoke.set_by("bob");
  ASSERT_TRUE(Control(smoke).ok());
  EXPECT_THAT(Cancelled(board), ElementsAre(assignment.assignment_id()));
  const v1::DeviceStanding standing = Standing("d1");
  EXPECT_EQ(standing.operator_state(), v1::OPERATOR_STATE_MAINTENANCE);
  EXPECT_EQ(standing.operator_standing().reason(), "fan swap");
  EXPECT_EQ(standing.operator_standing().until_unix_ms(), 0);
}

TEST_F(HoldsTest, BoardsWhoseCertificateIsRevokedSaySo) {
  const SessionId board = ConnectBoard("1");
  ConnectBoard("2");
  const std::string agent = Status("d1").agent_id();
  core_->CertificatesRevoked({});
  const size_t before = History("d1").size();
  core_->CertificatesRevoked({{agent, "stolen"}});
  core_->CertificatesRevoked({{agent, "stolen"}, {"another", "x"}});
  EXPECT_EQ(Status("d1").obstacle(), "") << "it is here yet";
  Disconnect(board);
  EXPECT_THAT(Status("d1").obstacle(),
              HasSubstr("its certificate was revoked: stolen; a token"));
  EXPECT_EQ(Status("d2").obstacle(), "");
  EXPECT_THAT(History("d1"), SizeIs(before + 1));
  EXPECT_EQ(History("d1").back(), "certificate revoked by tracker");
  Wait(options_.tick);
  Restart();
  ConnectBoard("1");
  core_->CertificatesRevoked({{agent, "stolen"}});
  EXPECT_THAT(History("d1"), SizeIs(before + 1)) << "that is no news";
  core_->CertificatesRevoked({});
  core_->CertificatesRevoked({{agent, "stolen"}});
  EXPECT_THAT(History("d1"), SizeIs(before + 2)) << "that is";
}

}  // namespace
}  // namespace regatta
