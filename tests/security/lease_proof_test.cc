// An agent with a certificate acts for itself and for what it holds only.
#include "tracker/lease_proof.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/tracker/core_fixture.h"
#include "tracker/tracker_core.h"

namespace regatta {
namespace {

TEST(LeaseProofTest, BindsAgentAssignmentAndEpoch) {
  const std::string proof = LeaseProof("s", "a1", "log/1/0/0", 7);
  EXPECT_EQ(proof.size(), 16u);
  EXPECT_EQ(proof, LeaseProof("s", "a1", "log/1/0/0", 7));
  EXPECT_NE(proof, LeaseProof("t", "a1", "log/1/0/0", 7));
  EXPECT_NE(proof, LeaseProof("s", "a2", "log/1/0/0", 7));
  EXPECT_NE(proof, LeaseProof("s", "a1", "log/1/0/1", 7));
  EXPECT_NE(proof, LeaseProof("s", "a1", "log/1/0/0", 8));
  // The parts do not run together.
  EXPECT_NE(LeaseProof("s", "ab", "c", 1), LeaseProof("s", "a", "bc", 1));
}

class GuardTest : public ::testing::Test {
 protected:
  static Identity Agent(const std::string& name,
                        const std::string& device_class = "") {
    return {.lab = "lab",
            .role = Role::kAgent,
            .name = name,
            .device_class = device_class};
  }
  // What came out since the last time, for this session.
  struct Out {
    std::vector<v1::TrackerMessage> messages;
    std::optional<absl::Status> closed;
    std::vector<Refusal> refusals;
  };
  Out Take(SessionId session) {
    Out out;
    for (Action& action : core_.TakeActions()) {
      if (auto* send = std::get_if<SendToAgent>(&action);
          send != nullptr && send->session == session) {
        out.messages.push_back(send->message);
      } else if (auto* close = std::get_if<CloseSession>(&action);
                 close != nullptr && close->session == session) {
        out.closed = close->status;
      } else if (auto* refusal = std::get_if<Refusal>(&action)) {
        out.refusals.push_back(*refusal);
      }
    }
    return out;
  }
  SessionId Open(const std::optional<Identity>& caller) {
    const SessionId session{++last_};
    core_.SessionOpened(session, {.identity = caller});
    return session;
  }
  static v1::AgentMessage Hello(const std::string& id,
                                const std::string& device,
                                const std::string& device_class = "x") {
    v1::AgentMessage message;
    v1::Hello* hello = message.mutable_hello();
    hello->set_protocol_version(v1::PROTOCOL_VERSION_CURRENT);
    hello->set_agent_id(id);
    hello->set_instance_id("i");
    v1::DeviceInfo* info = hello->add_devices();
    info->set_device_id(device);
    info->set_device_class(device_class);
    info->set_credit(4);
    return message;
  }
  // Submits work and returns what the agent is assigned.
  std::vector<v1::Assignment> Assign(SessionId session, int count) {
    const StreamId stream{++last_};
    core_.ServerOpened(stream);
    v1::DispatchRequest attach;
    attach.mutable_attach()->set_server_id("log");
    core_.ServerSaid(stream, attach);
    v1::DispatchRequest submit;
    for (int i = 0; i < count; ++i) {
      v1::Work* work = submit.mutable_submit()->add_work();
      work->set_work_id(absl::StrCat("1/0/", i));
      work->set_job_id(1);
      work->set_device_class("x");
      work->add_trials()->set_trial_id(work->work_id());
    }
    core_.ServerSaid(stream, submit);
    std::vector<v1::Assignment> assigned;
    for (const v1::TrackerMessage& message : Take(session).messages) {
      if (message.has_assign()) {
        assigned.push_back(message.assign().assignment());
      }
    }
    return assigned;
  }
  static void AddResult(v1::AgentMessage* batch, const std::string& assignment,
                        int64_t epoch, const std::string& proof) {
    v1::SpooledResult* spooled = batch->mutable_result_batch()->add_results();
    spooled->set_assignment_id(assignment);
    spooled->set_last(true);
    spooled->set_lease_proof(proof);
    spooled->mutable_result()->mutable_spec()->set_trial_id(
        assignment.substr(assignment.find('/') + 1));
    spooled->mutable_result()->set_outcome(v1::OUTCOME_OK);
    spooled->mutable_result()->set_attempt(1);
    spooled->mutable_result()->set_lease_epoch(epoch);
  }

  static TrackerOptions Options() {
    TrackerOptions options;
    options.fleet.auto_approve.all = true;
    return options;
  }

  const TrackerOptions options_ = Options();
  FakeClock clock_;
  Random random_{1};
  MemoryFleetStore store_;
  TrackerCore core_{options_, clock_, random_, store_};
  uint64_t last_ = 0;
};

TEST_F(GuardTest, AHelloIsOfTheCertificatesAgent) {
  const SessionId wrong = Open(Agent("a1"));
  core_.AgentSaid(wrong, Hello("a2", "a2"));
  const Out out = Take(wrong);
  ASSERT_TRUE(out.closed);
  EXPECT_EQ(out.closed->code(), absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(out.refusals.size(), 1u);
  EXPECT_EQ(out.refusals[0].who, "regatta://lab/agent/a1");
  EXPECT_EQ(out.refusals[0].what, "Hello");
  EXPECT_TRUE(core_.ListDevices().devices().empty());
  const SessionId right = Open(Agent("a1"));
  core_.AgentSaid(right, Hello("a1", "a1-gpu0"));
  EXPECT_FALSE(Take(right).closed);
  EXPECT_EQ(core_.ListDevices().devices_size(), 1);
}

TEST_F(GuardTest, ADeviceIsItsAgentsByName) {
  for (const char* device : {"a2", "a10", "b-a1", "a"}) {
    const SessionId session = Open(Agent("a1"));
    core_.AgentSaid(session, Hello("a1", device));
    const Out out = Take(session);
    ASSERT_TRUE(out.closed) << device;
    EXPECT_EQ(out.closed->code(), absl::StatusCode::kPermissionDenied);
  }
  const SessionId session = Open(Agent("a1"));
  core_.AgentSaid(session, Hello("a1", "a1"));
  Take(session);
  v1::AgentMessage update;
  update.mutable_device_update()->add_devices()->set_device_id("a2");
  update.mutable_device_update()->mutable_devices(0)->set_device_class("x");
  core_.AgentSaid(session, update);
  EXPECT_EQ(Take(session).closed->code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(core_.ListDevices().devices_size(), 1);
}

TEST_F(GuardTest, AnAwayBoardIsNotTakenOverByAShorterName) {
  const SessionId owner = Open(Agent("pi-1"));
  core_.AgentSaid(owner, Hello("pi-1", "pi-1"));
  ASSERT_FALSE(Take(owner).closed);
  core_.SessionClosed(owner);
  const SessionId rogue = Open(Agent("pi"));
  core_.AgentSaid(rogue, Hello("pi", "pi-1"));
  const Out out = Take(rogue);
  ASSERT_TRUE(out.closed);
  EXPECT_EQ(out.closed->code(), absl::StatusCode::kPermissionDenied);
  const SessionId back = Open(Agent("pi-1"));
  core_.AgentSaid(back, Hello("pi-1", "pi-1"));
  EXPECT_FALSE(Take(back).closed);
}

TEST_F(GuardTest, ACertificateForAClassServesThatClass) {
  const SessionId wrong = Open(Agent("a1", "y"));
  core_.AgentSaid(wrong, Hello("a1", "a1", "x"));
  EXPECT_EQ(Take(wrong).closed->code(), absl::StatusCode::kPermissionDenied);
  const SessionId right = Open(Agent("a1", "x"));
  core_.AgentSaid(right, Hello("a1", "a1", "x"));
  EXPECT_FALSE(Take(right).closed);
}

TEST_F(GuardTest, AResultCountsWithItsProofAndNotWithout) {
  const SessionId session = Open(Agent("a1"));
  core_.AgentSaid(session, Hello("a1", "a1"));
  Take(session);
  const auto assigned = Assign(session, 2);
  ASSERT_EQ(assigned.size(), 2u);
  EXPECT_EQ(assigned[0].lease_proof().size(), 16u);
  v1::AgentMessage batch;
  // Of the other assignment, of another epoch, forged, none.
  AddResult(&batch, assigned[0].assignment_id(), assigned[0].lease_epoch(),
            assigned[1].lease_proof());
  AddResult(&batch, assigned[0].assignment_id(), assigned[0].lease_epoch() + 1,
            assigned[0].lease_proof());
  AddResult(&batch, "log/9/9/9", 1, std::string(16, 'x'));
  AddResult(&batch, "log/9/9/9", 1, "");
  core_.AgentSaid(session, batch);
  const Out out = Take(session);
  EXPECT_FALSE(out.closed);
  ASSERT_EQ(out.messages.size(), 1u);
  ASSERT_EQ(out.messages[0].result_ack().acks_size(), 4);
  for (const v1::TrialAck& ack : out.messages[0].result_ack().acks()) {
    EXPECT_EQ(ack.status(), v1::ACK_STATUS_REJECTED);
    EXPECT_EQ(ack.reason(), "NOT_OWNER");
  }
  // The assignment is still held and ends by its own result.
  v1::AgentMessage good;
  AddResult(&good, assigned[0].assignment_id(), assigned[0].lease_epoch(),
            assigned[0].lease_proof());
  core_.AgentSaid(session, good);
  for (const v1::TrackerMessage& message : Take(session).messages) {
    EXPECT_FALSE(message.has_result_ack())
        << "it waits for the server's commit";
  }
  EXPECT_EQ(core_.ListDevices().devices(0).running(), 1);
}

TEST_F(GuardTest, TenWithinAMinuteEndTheSessionAndBarTheAgent) {
  const SessionId session = Open(Agent("a1"));
  core_.AgentSaid(session, Hello("a1", "a1"));
  Take(session);
  for (int i = 0; i < 9; ++i) {
    v1::AgentMessage batch;
    AddResult(&batch, "log/9/9/9", 1, "");
    core_.AgentSaid(session, batch);
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_FALSE(Take(session).closed);
  v1::AgentMessage batch;
  AddResult(&batch, "log/9/9/9", 1, "");
  core_.AgentSaid(session, batch);
  const Out out = Take(session);
  ASSERT_TRUE(out.closed);
  EXPECT_EQ(out.closed->code(), absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(out.refusals.size(), 1u);
  EXPECT_EQ(out.refusals[0].what, "ResultBatch");

  const SessionId again = Open(Agent("a1"));
  core_.AgentSaid(again, Hello("a1", "a1"));
  EXPECT_EQ(Take(again).closed->code(), absl::StatusCode::kPermissionDenied);
  const SessionId other = Open(Agent("a2"));
  core_.AgentSaid(other, Hello("a2", "a2"));
  EXPECT_FALSE(Take(other).closed);
  clock_.Advance(absl::Minutes(10));
  const SessionId later = Open(Agent("a1"));
  core_.AgentSaid(later, Hello("a1", "a1"));
  EXPECT_FALSE(Take(later).closed);
}

TEST_F(GuardTest, NowAndThenIsForgiven) {
  const SessionId session = Open(Agent("a1"));
  core_.AgentSaid(session, Hello("a1", "a1"));
  for (int i = 0; i < 40; ++i) {
    v1::AgentMessage batch;
    AddResult(&batch, "log/9/9/9", 1, "");
    core_.AgentSaid(session, batch);
    clock_.Advance(absl::Seconds(7));  // under nine a minute
  }
  EXPECT_FALSE(Take(session).closed);
}

TEST_F(GuardTest, ACertificateInTwoHandsIsBarred) {
  // Two processes are there from the third session on; five turns pass.
  std::optional<SessionId> newest;
  const auto take_over = [this](int turn) {
    const SessionId session = Open(Agent("a1"));
    v1::AgentMessage hello = Hello("a1", "a1");
    hello.mutable_hello()->set_instance_id(turn % 2 == 0 ? "here" : "there");
    core_.AgentSaid(session, hello);
    return session;
  };
  for (int turn = 0; turn < 7; ++turn) {
    newest = take_over(turn);
    EXPECT_FALSE(Take(*newest).closed) << turn;
    clock_.Advance(absl::Seconds(30));
  }
  const SessionId last = take_over(7);
  std::map<SessionId, absl::StatusCode> closed;
  for (const Action& action : core_.TakeActions()) {
    if (const auto* close = std::get_if<CloseSession>(&action)) {
      closed[close->session] = close->status.code();
    }
  }
  EXPECT_EQ(closed, (std::map<SessionId, absl::StatusCode>{
                        {*newest, absl::StatusCode::kAborted},
                        {last, absl::StatusCode::kPermissionDenied}}));
  // Nor is either let in again, for a while.
  EXPECT_EQ(Take(take_over(8)).closed->code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(GuardTest, NobodyAdoptsWorkByNamingIt) {
  const SessionId session = Open(Agent("a1"));
  v1::AgentMessage hello = Hello("a1", "a1");
  v1::HeldAssignment* held = hello.mutable_hello()->add_held();
  held->set_assignment_id("log/1/0/0");
  held->set_attempt(1);
  held->set_lease_epoch(5);
  core_.AgentSaid(session, hello);
  const auto verdict = [&] {
    return Take(session).messages.at(0).welcome().verdicts(0).verdict();
  };
  EXPECT_EQ(verdict(), v1::VERDICT_ABANDON);
  // After a restart of the tracker the proof of the one before still counts.
  TrackerCore next(options_, clock_, random_, store_);
  held->set_lease_proof(LeaseProof(store_.secret, "a1", "log/1/0/0", 5));
  next.SessionOpened(session, {.identity = Agent("a1")});
  next.AgentSaid(session, hello);
  bool continued = false;
  for (const Action& action : next.TakeActions()) {
    const auto* send = std::get_if<SendToAgent>(&action);
    if (send != nullptr && send->message.has_welcome()) {
      continued =
          send->message.welcome().verdicts(0).verdict() == v1::VERDICT_CONTINUE;
    }
  }
  EXPECT_TRUE(continued);
}

TEST(SessionBoundsTest, SessionsBeyondTheBoundAreClosedWithTheReason) {
  TrackerOptions options;
  options.max_sessions = 3;
  options.max_unnamed_sessions = 2;
  FakeClock clock;
  Random random(1);
  MemoryFleetStore store;
  TrackerCore core(options, clock, random, store);
  std::vector<SessionId> closed;
  for (uint64_t i = 1; i <= 4; ++i) core.SessionOpened(SessionId{i});
  for (const Action& action : core.TakeActions()) {
    if (const auto* close = std::get_if<CloseSession>(&action)) {
      EXPECT_EQ(close->status.code(), absl::StatusCode::kResourceExhausted);
      closed.push_back(close->session);
    }
  }
  EXPECT_EQ(closed, (std::vector<SessionId>{SessionId{3}, SessionId{4}}));
}

TEST(SessionBoundsTest, OneCertificateHasAShareOfThoseWithoutHello) {
  FakeClock clock;
  Random random(1);
  MemoryFleetStore store;
  TrackerCore core({}, clock, random, store);
  const auto opened = [&](uint64_t i, const std::string& name) {
    core.SessionOpened(SessionId{i},
                       {.identity = Identity{.lab = "lab",
                                             .role = Role::kAgent,
                                             .name = name,
                                             .device_class = ""}});
    for (const Action& action : core.TakeActions()) {
      if (std::holds_alternative<CloseSession>(action)) return false;
    }
    return true;
  };
  for (uint64_t i = 1; i <= 16; ++i) EXPECT_TRUE(opened(i, "a1")) << i;
  EXPECT_FALSE(opened(17, "a1"));
  EXPECT_TRUE(opened(18, "a2"));
  core.SessionClosed(SessionId{3});
  EXPECT_TRUE(opened(19, "a1"));
}

}  // namespace
}  // namespace regatta
