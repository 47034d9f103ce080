// Who gets what, and when.
#include "tests/tracker/core_fixture.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using DispatchTest = CoreTest;

TEST_F(DispatchTest, WorkGoesToAFreeBoardAtOnce) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment assignment = OneAssigned(board);
  EXPECT_EQ(assignment.assignment_id(), "log1/7/0/0");
  EXPECT_EQ(assignment.device_id(), "d1");
  EXPECT_EQ(assignment.attempt(), 1);
  EXPECT_EQ(assignment.lease_ms(), 60'000);
  ASSERT_EQ(assignment.trials_size(), 1);
  EXPECT_EQ(assignment.trials(0).trial_id(), "7/0/0");
}

TEST_F(DispatchTest, ABoardThatArrivesGetsQueuedWorkAtOnce) {
  const StreamId server = Attach();
  Submit(server, {MakeWork(7, 0)});
  EXPECT_THAT(Assigned(ConnectBoard("1")), testing::SizeIs(1));
}

TEST_F(DispatchTest, InputsOfAGroupShareOneWriteToTheStore) {
  const StreamId server = Attach();
  Submit(server, {MakeWork(7, 0), MakeWork(7, 1), MakeWork(7, 2)});
  const int before = store_.puts;
  core_->BeginGroup();
  const SessionId first = ConnectBoard("1");
  const SessionId second = ConnectBoard("2");
  EXPECT_THAT(Assigned(first), IsEmpty()) << "dispatched at the group's end";
  core_->EndGroup();
  Drain();
  EXPECT_THAT(Assigned(first), testing::SizeIs(1));
  EXPECT_THAT(Assigned(second), testing::SizeIs(1));
  EXPECT_EQ(store_.puts, before + 1) << "both may hold work: known before";
  // And by itself again.
  EXPECT_THAT(Assigned(ConnectBoard("3")), testing::SizeIs(1));
  EXPECT_EQ(store_.puts, before + 2);
}

TEST_F(DispatchTest, NeverMoreThanTheCreditIsOutstanding) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1", /*credit=*/2);
  Submit(server, {MakeWork(7, 0), MakeWork(7, 1), MakeWork(7, 2)});
  const auto first = Assigned(board);
  ASSERT_EQ(first.size(), 2u);
  Finish(board, first[0]);
  EXPECT_THAT(Ids(Assigned(board)), ElementsAre("log1/7/0/2"))
      << "the result itself frees the credit, no tick and no commit needed";
}

TEST_F(DispatchTest, HigherPriorityGoesFirst) {
  const StreamId server = Attach();
  Submit(server, {MakeWork(1, 0, 1, 0), MakeWork(2, 0, 1, 5)});
  EXPECT_EQ(OneAssigned(ConnectBoard("1")).assignment_id(), "log1/2/0/0");
}

TEST_F(DispatchTest, JobsOfOnePriorityTakeTurnsAndEachIsFirstInFirstOut) {
  const StreamId server = Attach();
  Submit(server, {MakeWork(1, 0), MakeWork(1, 1), MakeWork(1, 2),
                  MakeWork(2, 0), MakeWork(2, 1)});
  EXPECT_THAT(Ids(Assigned(ConnectBoard("1", /*credit=*/5))),
              ElementsAre("log1/1/0/0", "log1/2/0/0", "log1/1/0/1",
                          "log1/2/0/1", "log1/1/0/2"));
}

TEST_F(DispatchTest, WorkIsSpreadOverBoards) {
  const StreamId server = Attach();
  const SessionId one = ConnectBoard("1", /*credit=*/2);
  const SessionId two = ConnectBoard("2", /*credit=*/2);
  Submit(server, {MakeWork(1, 0), MakeWork(1, 1)});
  EXPECT_THAT(Assigned(one), testing::SizeIs(1));
  EXPECT_THAT(Assigned(two), testing::SizeIs(1));
}

TEST_F(DispatchTest, ABoardMustAgreeInClassCompilerAndSpace) {
  const StreamId server = Attach();
  v1::Hello other_compiler = MakeHello("a1", {MakeDevice("d1")});
  other_compiler.set_compiler_version("c2");
  v1::Hello other_space = MakeHello("a2", {MakeDevice("d2")});
  other_space.set_space("gpu");
  v1::Hello other_version = MakeHello("a3", {MakeDevice("d3")});
  other_version.set_space_version(2);
  const v1::Hello other_class =
      MakeHello("a4", {MakeDevice("d4", 1, "cortex-a72-4c")});
  std::vector<SessionId> boards;
  for (const auto& hello :
       {other_compiler, other_space, other_version, other_class}) {
    boards.push_back(Connect(hello));
  }
  Submit(server, {MakeWork(7, 0)});
  for (SessionId board : boards) EXPECT_THAT(Assigned(board), IsEmpty());
  EXPECT_THAT(Assigned(ConnectBoard("5")), testing::SizeIs(1));
}

TEST_F(DispatchTest, ADeviceMayHaveACompilerAndSpaceOfItsOwn) {
  const StreamId server = Attach();
  v1::DeviceInfo gpu = MakeDevice("g1", 1, "opencl-gpu-4cu");
  gpu.set_compiler_version("c7");
  gpu.set_space("opencl");
  gpu.set_space_version(3);
  const SessionId board = Connect(MakeHello("a1", {MakeDevice("d1"), gpu}));
  v1::Work work = MakeWork(7, 0);
  work.set_device_class("opencl-gpu-4cu");
  Submit(server, {work});  // of the agent's compiler and space
  EXPECT_THAT(Assigned(board), IsEmpty());
  work.set_work_id("7/0/1");
  work.mutable_trials(0)->set_trial_id("7/0/1");
  work.set_compiler_version("c7");
  work.set_space("opencl");
  work.set_space_version(3);
  Submit(server, {work});
  EXPECT_EQ(OneAssigned(board).device_id(), "g1");
  // The other device of the agent is free all the same.
  Submit(server, {MakeWork(8, 0)});
  EXPECT_EQ(OneAssigned(board).device_id(), "d1");
}

TEST_F(DispatchTest, AnAvoidedBoardGetsTheWorkOnlyWhenThereIsNoOther) {
  const StreamId server = Attach();
  const SessionId avoided = ConnectBoard("1");
  v1::Work work = MakeWork(7, 0);
  work.add_avoid_device_ids("d1");
  Submit(server, {work});
  EXPECT_THAT(Assigned(avoided), testing::SizeIs(1));
}

TEST_F(DispatchTest, WorkWaitsForABusyBoardRatherThanUseAnAvoidedOne) {
  const StreamId server = Attach();
  const SessionId avoided = ConnectBoard("1");
  const SessionId other = ConnectBoard("2");
  Submit(server, {MakeWork(1, 0), MakeWork(1, 1)});
  const v1::Assignment first = OneAssigned(avoided);
  const v1::Assignment second = OneAssigned(other);
  Finish(avoided, first);
  v1::Work work = MakeWork(7, 0);
  work.add_avoid_device_ids("d1");
  Submit(server, {work});
  EXPECT_THAT(Assigned(avoided), IsEmpty());
  Finish(other, second);
  EXPECT_EQ(OneAssigned(other).assignment_id(), "log1/7/0/0");
}

TEST_F(DispatchTest, WorkThatMustWaitDoesNotBlockTheWorkBehindIt) {
  const StreamId server = Attach();
  const SessionId avoided = ConnectBoard("1");
  const SessionId other = ConnectBoard("2");
  Submit(server, {MakeWork(1, 0), MakeWork(1, 1)});
  Finish(avoided, OneAssigned(avoided));
  OneAssigned(other);
  v1::Work picky = MakeWork(7, 0);
  picky.add_avoid_device_ids("d1");
  Submit(server, {picky, MakeWork(7, 1)});
  EXPECT_EQ(OneAssigned(avoided).assignment_id(), "log1/7/0/1");
}

TEST_F(DispatchTest, InterleavedTrialsAreOneAssignment) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  v1::Work work = MakeWork(7, 0, /*trials=*/3);
  work.set_mode(v1::ASSIGNMENT_MODE_INTERLEAVE);
  Submit(server, {work});
  const v1::Assignment assignment = OneAssigned(board);
  EXPECT_EQ(assignment.mode(), v1::ASSIGNMENT_MODE_INTERLEAVE);
  EXPECT_EQ(assignment.trials_size(), 3);
}

TEST_F(DispatchTest, ADeviceUpdateWithCreditOpensABoardForWork) {
  const StreamId server = Attach();
  const SessionId board =
      Connect(MakeHello("a1", {MakeDevice("d1", /*credit=*/0)}));
  Submit(server, {MakeWork(7, 0)});
  EXPECT_THAT(Assigned(board), IsEmpty());
  v1::AgentMessage update;
  *update.mutable_device_update()->add_devices() = MakeDevice("d1", 1);
  Say(board, update);
  EXPECT_THAT(Assigned(board), testing::SizeIs(1));
}

TEST_F(DispatchTest, SubmittingAgainChangesNothing) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1", /*credit=*/4);
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment assignment = OneAssigned(board);
  Submit(server, {MakeWork(7, 0)});
  EXPECT_THAT(Assigned(board), IsEmpty());
  Finish(board, assignment);
  Submit(server, {MakeWork(7, 0)});
  EXPECT_THAT(Assigned(board), IsEmpty()) << "finished, waits for the commit";
}

TEST_F(DispatchTest, ARefusedAssignmentIsQueuedAgainAsTheSameAttempt) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  Submit(server, {MakeWork(7, 0)});
  const v1::Assignment first = OneAssigned(board);
  Accept(board, first, /*accepted=*/false, "disk is full");
  EXPECT_THAT(Assigned(board), IsEmpty()) << "the board cools down";
  Wait(options_.cool_down + options_.tick);
  const v1::Assignment second = OneAssigned(board);
  EXPECT_EQ(second.attempt(), 1);
  EXPECT_GT(second.lease_epoch(), first.lease_epoch());
}

TEST_F(DispatchTest, WithoutADurableNoteOfTheHolderNothingIsSent) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  store_.error = absl::ResourceExhaustedError("disk full");
  Submit(server, {MakeWork(7, 0)});
  EXPECT_THAT(Assigned(board), IsEmpty());
  Wait(absl::Seconds(2));
  EXPECT_THAT(WaitReason(server), testing::HasSubstr("disk full"));
  store_.error = absl::OkStatus();
  Wait(absl::Seconds(1));
  EXPECT_THAT(Assigned(board), testing::SizeIs(1));
  EXPECT_TRUE(store_.agents["a1"].holds_leases);
}

TEST_F(DispatchTest, TwoServersWithEqualJobNumbersDoNotMix) {
  const StreamId one = Attach("log1");
  const StreamId two = Attach("log2");
  const SessionId board = ConnectBoard("1", /*credit=*/2);
  Submit(one, {MakeWork(7, 0)});
  Submit(two, {MakeWork(7, 0)});
  const auto assigned = Assigned(board);
  EXPECT_THAT(Ids(assigned), ElementsAre("log1/7/0/0", "log2/7/0/0"));
  Finish(board, assigned[1]);
  EXPECT_THAT(Results(one), IsEmpty());
  EXPECT_THAT(Results(two), testing::SizeIs(1));
}

}  // namespace
}  // namespace regatta
