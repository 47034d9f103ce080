// A loop on a fake clock and a fake disk, and everything it asked for so far.
#ifndef REGATTA_TESTS_DEVICE_AGENT_LOOP_AGENT_LOOP_HARNESS_H_
#define REGATTA_TESTS_DEVICE_AGENT_LOOP_AGENT_LOOP_HARNESS_H_

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device_agent/loop/agent_loop.h"
#include "gtest/gtest.h"
#include "tests/device_agent/loop/fake_spool_storage.h"

namespace regatta {

inline v1::Hello TestHello() {
  v1::Hello hello;
  hello.set_agent_id("board");
  hello.set_instance_id("i1");
  hello.set_boot_id("boot");
  hello.set_agent_version("0.1");
  hello.set_compiler_version("c1");
  hello.set_space("cpu");
  hello.set_space_version(3);
  v1::DeviceInfo& device = *hello.add_devices();
  device.set_device_id("board");
  device.set_device_class("zen-2c");
  device.set_target("cpu,mcpu=znver4");
  device.set_credit(3);
  return hello;
}

inline v1::Assignment TestAssignment(const std::string& id, int64_t epoch = 1,
                                     int trials = 1) {
  v1::Assignment assignment;
  assignment.set_assignment_id(id);
  assignment.set_mode(v1::ASSIGNMENT_MODE_SCREEN);
  assignment.set_attempt(1);
  assignment.set_lease_epoch(epoch);
  assignment.set_lease_ms(60'000);
  assignment.set_device_id("board");
  for (int i = 0; i < trials; ++i) {
    v1::TrialSpec& trial = *assignment.add_trials();
    trial.set_trial_id(absl::StrCat(id, "/", i));
    trial.set_workload("matmul(m=4,n=4,k=4)");
    trial.set_device_class("zen-2c");
    trial.set_target("cpu,mcpu=znver4");
    trial.set_compiler_version("c1");
    trial.mutable_schedule()->set_space("cpu");
    trial.mutable_schedule()->set_space_version(3);
  }
  return assignment;
}

inline v1::TrialResult ResultOf(const v1::Assignment& assignment, int trial) {
  v1::TrialResult result;
  *result.mutable_spec() = assignment.trials(trial);
  result.set_outcome(v1::OUTCOME_OK);
  result.set_attempt(assignment.attempt());
  result.set_lease_epoch(assignment.lease_epoch());
  return result;
}

// A loop on a fake clock, and everything it asked for so far.
class AgentLoopTest : public testing::Test {
 protected:
  AgentLoopTest() { Restart(); }

  // A new process on the same disk.
  void Restart() {
    loop_.reset();
    spool_.reset();
    auto spool =
        Spool::Open(std::make_unique<FakeSpoolStorage>(&disk_), limits_);
    EXPECT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
    AgentLoop::Options options;
    options.hello = TestHello();
    loop_ = std::make_unique<AgentLoop>(options, &clock_, Random(seed_++),
                                        spool_.get());
    connected_ = false;
  }

  void Collect() {
    for (AgentAction& action : loop_->Settle()) {
      if (auto* send = std::get_if<SendAction>(&action)) {
        sent_.push_back(send->message);
      } else if (auto* start = std::get_if<StartAction>(&action)) {
        started_.push_back(start->assignment.assignment_id());
      } else if (auto* stop = std::get_if<StopAction>(&action)) {
        stopped_.push_back(stop->assignment_id);
      } else if (auto* finish = std::get_if<FinishAction>(&action)) {
        finishing_.push_back(finish->assignment_id);
      } else if (auto* close = std::get_if<CloseAction>(&action)) {
        closed_.push_back(close->reason);
        connected_ = false;
      } else if (auto* session = std::get_if<SessionAction>(&action)) {
        sessions_.push_back(session->state);
      } else if (auto* build = std::get_if<BuildAction>(&action)) {
        builds_.push_back(build->message);
      } else {
        ++connects_;
        connected_ = true;
      }
    }
  }

  void Tick() {
    loop_->OnTick(++ticks_);
    Collect();
  }

  // Lets time pass, waking the loop when it asks to be.
  void Pass(absl::Duration d) {
    const SteadyTime end = clock_.Steady() + d;
    while (true) {
      const SteadyTime wake = loop_->NextWake();
      if (wake > end) break;
      if (wake > clock_.Steady()) clock_.Advance(wake - clock_.Steady());
      Tick();
      ASSERT_GT(loop_->NextWake(), wake) << "the loop would spin";
    }
    clock_.Advance(end - clock_.Steady());
  }

  void Receive(const v1::TrackerMessage& message) {
    loop_->OnMessage(message);
    Collect();
  }

  v1::TrackerMessage WelcomeMessage(int64_t epoch = 1) {
    v1::TrackerMessage message;
    v1::Welcome& welcome = *message.mutable_welcome();
    welcome.set_session_id("s");
    welcome.set_tracker_epoch(epoch);
    welcome.set_heartbeat_ms(10'000);
    welcome.set_lease_ms(60'000);
    return message;
  }

  void ConnectAtOnce() {
    if (!connected_) {
      clock_.Advance(
          std::max(absl::ZeroDuration(), loop_->NextWake() - clock_.Steady()));
      Tick();
    }
    ASSERT_TRUE(connected_);
    loop_->OnConnected();
    Collect();
  }

  void ConnectWelcomed() {
    ConnectAtOnce();
    Receive(WelcomeMessage());
    ASSERT_TRUE(loop_->welcomed());
  }

  void Assign(const v1::Assignment& assignment) {
    v1::TrackerMessage message;
    *message.mutable_assign()->mutable_assignment() = assignment;
    Receive(message);
  }

  void Finish(const v1::Assignment& assignment, int trial) {
    loop_->OnResult(assignment.assignment_id(), ResultOf(assignment, trial),
                    trial + 1 == assignment.trials_size());
    Collect();
  }

  void Ack(const std::string& trial, v1::AckStatus status,
           int32_t attempt = 1) {
    v1::TrackerMessage message;
    v1::TrialAck& ack = *message.mutable_result_ack()->add_acks();
    ack.set_trial_id(trial);
    ack.set_attempt(attempt);
    ack.set_status(status);
    Receive(message);
  }

  // Acknowledges the latest heartbeat.
  void AckHeartbeat(std::vector<std::string> renewed,
                    std::vector<std::string> abandoned = {}) {
    v1::TrackerMessage message;
    v1::HeartbeatAck& ack = *message.mutable_heartbeat_ack();
    for (const v1::AgentMessage& sent : sent_) {
      if (sent.has_heartbeat()) ack.set_sequence(sent.heartbeat().sequence());
    }
    ack.set_lease_ms(60'000);
    for (const std::string& id : renewed) ack.add_renewed(id);
    for (const std::string& id : abandoned) ack.add_abandoned(id);
    Receive(message);
  }

  // The messages of one kind since the last Clear.
  template <typename Part>
  std::vector<Part> Sent(bool (v1::AgentMessage::*has)() const,
                         const Part& (v1::AgentMessage::*get)() const) const {
    std::vector<Part> parts;
    for (const v1::AgentMessage& message : sent_) {
      if ((message.*has)()) parts.push_back((message.*get)());
    }
    return parts;
  }
  auto Hellos() {
    return Sent(&v1::AgentMessage::has_hello, &v1::AgentMessage::hello);
  }
  auto Heartbeats() {
    return Sent(&v1::AgentMessage::has_heartbeat, &v1::AgentMessage::heartbeat);
  }
  auto Replies() {
    return Sent(&v1::AgentMessage::has_assignment_reply,
                &v1::AgentMessage::assignment_reply);
  }
  auto Releases() {
    return Sent(&v1::AgentMessage::has_release, &v1::AgentMessage::release);
  }
  auto Batches() {
    return Sent(&v1::AgentMessage::has_result_batch,
                &v1::AgentMessage::result_batch);
  }
  std::vector<std::string> SentTrials() {
    std::vector<std::string> trials;
    for (const v1::ResultBatch& batch : Batches()) {
      for (const v1::SpooledResult& result : batch.results()) {
        trials.push_back(result.result().spec().trial_id());
      }
    }
    return trials;
  }
  std::vector<std::string> HeldInHello() {
    std::vector<std::string> ids;
    const v1::Hello hello = Hellos().back();
    for (const v1::HeldAssignment& held : hello.held()) {
      ids.push_back(held.assignment_id());
    }
    return ids;
  }
  void Clear() {
    sent_.clear();
    started_.clear();
    stopped_.clear();
    finishing_.clear();
    closed_.clear();
    connects_ = 0;
  }

  FakeClock clock_;
  FakeDisk disk_;
  SpoolLimits limits_;
  uint64_t seed_ = 1;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<AgentLoop> loop_;
  std::vector<v1::AgentMessage> sent_;
  std::vector<std::string> started_, stopped_, finishing_, closed_;
  std::vector<SessionState> sessions_;
  std::vector<v1::TrackerMessage> builds_;
  int connects_ = 0;
  bool connected_ = false;
  int64_t ticks_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_DEVICE_AGENT_LOOP_AGENT_LOOP_HARNESS_H_
