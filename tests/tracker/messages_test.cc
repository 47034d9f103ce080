// Messages that are wrong end their stream and change nothing else.
#include "tests/tracker/core_fixture.h"
#include "tracker/message_check.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class MessagesTest : public CoreTest {
 protected:
  // Says it on a session of a healthy agent with an assignment, and expects the
  // session to end with InvalidArgument and this text.
  void ExpectRefused(const v1::AgentMessage& message, const std::string& text) {
    const StreamId server = Attach();
    const SessionId board = ConnectBoard("1");
    Submit(server, {MakeWork(7, 0)});
    const v1::Assignment assignment = OneAssigned(board);
    Accept(board, assignment);
    Say(board, message);
    ASSERT_TRUE(agents_[board].closed.has_value());
    EXPECT_EQ(agents_[board].closed->code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(agents_[board].closed->message()), HasSubstr(text));
    EXPECT_THAT(Results(server), IsEmpty());
    EXPECT_EQ(Status("d1").running(), 1) << "the lease is as it was";
  }
  void ExpectHelloRefused(const v1::Hello& hello, absl::StatusCode code,
                          const std::string& text) {
    const SessionId session = Connect(hello);
    ASSERT_TRUE(agents_[session].closed.has_value());
    EXPECT_EQ(agents_[session].closed->code(), code);
    EXPECT_THAT(std::string(agents_[session].closed->message()),
                HasSubstr(text));
    EXPECT_EQ(core_->ListDevices().devices_size(), 0);
  }
  void ExpectServerRefused(const v1::DispatchRequest& request,
                           const std::string& text) {
    const StreamId server = Attach();
    Ask(server, request);
    ASSERT_TRUE(servers_[server].closed.has_value());
    EXPECT_EQ(servers_[server].closed->code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(servers_[server].closed->message()),
                HasSubstr(text));
    EXPECT_THAT(Assigned(ConnectBoard("1")), IsEmpty());
  }
};

TEST_F(MessagesTest, AHelloMustBeWhole) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  v1::Hello hello = MakeHello("", {MakeDevice("d1")});
  ExpectHelloRefused(hello, invalid, "agent_id is empty");
  hello = MakeHello("a1", {MakeDevice("d1")}, "");
  ExpectHelloRefused(hello, invalid, "instance_id is empty");
  hello = MakeHello("a1", {MakeDevice("")});
  ExpectHelloRefused(hello, invalid, "device_id is empty");
  hello = MakeHello("a1", {MakeDevice("d1", 1, "")});
  ExpectHelloRefused(hello, invalid, "device_class is empty");
  hello = MakeHello("a1", {MakeDevice("d1"), MakeDevice("d1")});
  ExpectHelloRefused(hello, invalid, "appears twice");
  hello = MakeHello("a1", {MakeDevice("d1", -1)});
  ExpectHelloRefused(hello, invalid, "credit");
  hello = MakeHello(std::string(600, 'a'), {MakeDevice("d1")});
  ExpectHelloRefused(hello, invalid, "600 bytes");
  hello = MakeHello("a1", {MakeDevice("d1")});
  hello.add_held();
  ExpectHelloRefused(hello, invalid, "held.assignment_id is empty");
}

TEST_F(MessagesTest, AnotherProtocolVersionIsAFailedPrecondition) {
  v1::Hello hello = MakeHello("a1", {MakeDevice("d1")});
  hello.set_protocol_version(99);
  ExpectHelloRefused(hello, absl::StatusCode::kFailedPrecondition,
                     "protocol version 99");
}

TEST_F(MessagesTest, ASessionBeginsWithHello) {
  const SessionId session = OpenSession();
  Beat(session);
  ASSERT_TRUE(agents_[session].closed.has_value());
  EXPECT_EQ(agents_[session].closed->code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(MessagesTest, ASessionThatNeverSaysHelloIsClosed) {
  const SessionId session = OpenSession();
  Wait(absl::Seconds(11));
  EXPECT_TRUE(agents_[session].closed.has_value());
}

TEST_F(MessagesTest, ASecondHelloEndsTheSession) {
  v1::AgentMessage message;
  *message.mutable_hello() = MakeHello("a1", {MakeDevice("d1")});
  ExpectRefused(message, "only one Hello");
}

TEST_F(MessagesTest, AnEmptyMessageEndsTheSession) {
  ExpectRefused(v1::AgentMessage(), "empty");
}

TEST_F(MessagesTest, AResultWithoutATrialEndsTheSession) {
  v1::AgentMessage message;
  v1::SpooledResult* spooled = message.mutable_result_batch()->add_results();
  spooled->set_assignment_id("log1/7/0/0");
  spooled->mutable_result()->set_outcome(v1::OUTCOME_OK);
  ExpectRefused(message, "trial_id is empty");
}

TEST_F(MessagesTest, AnUnknownOutcomeEndsTheSession) {
  v1::AgentMessage message;
  v1::SpooledResult* spooled = message.mutable_result_batch()->add_results();
  spooled->set_assignment_id("log1/7/0/0");
  spooled->mutable_result()->mutable_spec()->set_trial_id("7/0/0");
  spooled->mutable_result()->set_attempt(1);
  spooled->mutable_result()->set_outcome(static_cast<v1::Outcome>(77));
  ExpectRefused(message, "77");
}

TEST_F(MessagesTest, OneBadResultSpoilsItsBatch) {
  v1::AgentMessage message;
  v1::Assignment assignment;
  assignment.set_assignment_id("log1/7/0/0");
  assignment.set_attempt(1);
  assignment.add_trials()->set_trial_id("7/0/0");
  *message.mutable_result_batch()->add_results() =
      MakeResult(assignment, 0, true);
  message.mutable_result_batch()->add_results();
  ExpectRefused(message, "assignment_id is empty");
}

TEST_F(MessagesTest, AMessageAboveOneMebibyteEndsTheSession) {
  v1::AgentMessage message;
  message.mutable_release()->set_assignment_id("x");
  message.mutable_release()->set_reason(std::string(2 << 20, 'x'));
  ExpectRefused(message, "at most 1048576");
}

TEST_F(MessagesTest, AMessageOnAClosedSessionIsIgnored) {
  const SessionId board = ConnectBoard("1");
  Say(board, v1::AgentMessage());
  agents_.clear();
  Beat(board);
  EXPECT_THAT(agents_, IsEmpty());
}

TEST_F(MessagesTest, AStreamOfAServerBeginsWithAttach) {
  const StreamId stream{++last_id_};
  core_->ServerOpened(stream);
  Submit(stream, {MakeWork(7, 0)});
  ASSERT_TRUE(servers_[stream].closed.has_value());
  EXPECT_EQ(servers_[stream].closed->code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(MessagesTest, ASubmissionIsTakenWholeOrNotAtAll) {
  v1::DispatchRequest request;
  *request.mutable_submit()->add_work() = MakeWork(7, 0);
  *request.mutable_submit()->add_work() = MakeWork(7, 1, /*trials=*/0);
  ExpectServerRefused(request, "has 0 trials");
}

TEST_F(MessagesTest, WorkMustFitIntoOneAssignment) {
  v1::DispatchRequest request;
  *request.mutable_submit()->add_work() = MakeWork(7, 0, /*trials=*/65);
  ExpectServerRefused(request, "has 65 trials");
}

TEST_F(MessagesTest, WorkAboveWhatABoardTakesIsRefusedAndTheRestGoesOn) {
  const StreamId server = Attach();
  const SessionId board = ConnectBoard("1");
  v1::Work large = MakeWork(7, 0, /*trials=*/2);
  large.mutable_trials(0)->set_workload(std::string(800 << 10, 'x'));
  Submit(server, {large, MakeWork(7, 2)});
  EXPECT_FALSE(servers_[server].closed.has_value());
  EXPECT_EQ(OneAssigned(board).assignment_id(), "log1/7/0/2");
  const auto results = Results(server);
  ASSERT_THAT(results, SizeIs(2));
  for (const auto& result : results) {
    EXPECT_EQ(result.outcome(), v1::OUTCOME_REFUSED);
    EXPECT_THAT(result.detail(), HasSubstr("at most 782336"));
  }
  Commit(server, results);
  Wait(absl::Seconds(2));
  EXPECT_THAT(LastWaits(server)->jobs(), IsEmpty());
}

TEST_F(MessagesTest, ATrackerSpeaksItsOwnProtocolVersionAndTheOneBefore) {
  EXPECT_TRUE(SpeaksProtocol(1, 1));
  EXPECT_FALSE(SpeaksProtocol(0, 1)) << "an agent that names none";
  EXPECT_FALSE(SpeaksProtocol(2, 1));
  EXPECT_TRUE(SpeaksProtocol(3, 3));
  EXPECT_TRUE(SpeaksProtocol(2, 3));
  EXPECT_FALSE(SpeaksProtocol(1, 3));
}

TEST_F(MessagesTest, ATrialBelongsToOneUnitOfWork) {
  v1::DispatchRequest request;
  *request.mutable_submit()->add_work() = MakeWork(7, 0, /*trials=*/2);
  *request.mutable_submit()->add_work() = MakeWork(7, 1);
  ExpectServerRefused(request, "belongs to other work");
}

TEST_F(MessagesTest, AServerIdWithASlashIsRefused) {
  const StreamId server = Attach("a/b");
  ASSERT_TRUE(servers_[server].closed.has_value());
}

TEST_F(MessagesTest, OneBadAgentDoesNotDisturbAnother) {
  const SessionId good = ConnectBoard("1");
  const SessionId bad = ConnectBoard("2");
  Say(bad, v1::AgentMessage());
  EXPECT_TRUE(agents_[bad].closed.has_value());
  EXPECT_FALSE(agents_[good].closed.has_value());
  Submit(Attach(), {MakeWork(7, 0)});
  EXPECT_THAT(Assigned(good), SizeIs(1));
}

}  // namespace
}  // namespace regatta
