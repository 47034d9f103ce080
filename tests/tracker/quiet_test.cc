// What the tracker does while a board times a run, and what it notes of clocks.
#include "gmock/gmock.h"
#include "tests/tracker/core_fixture.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using QuietTest = CoreTest;

TEST_F(QuietTest, WhatIsOnlyToBeBuiltAheadWaitsForTheEndOfARun) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1", /*credit=*/2);
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment first = OneAssigned(board);
  Accept(board, first);
  Beat(board, {first.assignment_id()}, 1, /*quiet_ms=*/20'000);
  Submit(server, {MakeWork(7, 1)});
  Wait(absl::Seconds(10));
  EXPECT_THAT(Assigned(board), IsEmpty());
  // Whatever it says ends the silence.
  Finish(board, first);
  EXPECT_THAT(Assigned(board), SizeIs(1));
}

TEST_F(QuietTest, WorkWaitsNoLongerThanTheSilenceThatWasAnnounced) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1", /*credit=*/2);
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment first = OneAssigned(board);
  Accept(board, first);
  Beat(board, {first.assignment_id()}, 1, /*quiet_ms=*/5'000);
  Submit(server, {MakeWork(7, 1)});
  Wait(absl::Seconds(4));
  EXPECT_THAT(Assigned(board), IsEmpty());
  Wait(absl::Seconds(2));
  EXPECT_THAT(Assigned(board), SizeIs(1));
}

TEST_F(QuietTest, AnIdleDeviceOfABoardThatIsQuietGetsWork) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Beat(board, {}, 0, /*quiet_ms=*/20'000);
  Submit(server, {MakeWork(7, 0)});
  EXPECT_THAT(Assigned(board), SizeIs(1));
}

TEST_F(QuietTest, ClocksThatAreNotHeldAndAreAgainAreEvents) {
  v1::DeviceInfo device = MakeDevice("d1");
  const SessionId board = Connect(MakeHello("a1", {device}));
  const auto update = [&](const std::string& uncontrolled) {
    device.set_uncontrolled(uncontrolled);
    v1::AgentMessage message;
    *message.mutable_device_update()->add_devices() = device;
    Say(board, message);
  };
  const auto noted = [&] {
    std::vector<std::string> texts;
    for (const v1::DeviceEvent& event : announced_) {
      if (event.what() == "uncontrolled" || event.what() == "controlled") {
        texts.push_back(event.what() + ": " + event.reason());
      }
    }
    return texts;
  };
  update("");
  EXPECT_THAT(noted(), IsEmpty());
  const std::string why =
      "governor powersave on cpu0; run: cpupower frequency-set -g performance";
  update(why);
  update(why);
  EXPECT_THAT(noted(), ElementsAre("uncontrolled: " + why));
  EXPECT_EQ(Status("d1").info().uncontrolled(), why);
  update("");
  EXPECT_THAT(noted(), ElementsAre("uncontrolled: " + why,
                                   "controlled: clocks are as its class asks"));
}

}  // namespace
}  // namespace regatta
