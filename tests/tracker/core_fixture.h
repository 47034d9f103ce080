// A TrackerCore on a fake clock with inboxes for what it sends.
#ifndef REGATTA_TESTS_TRACKER_CORE_FIXTURE_H_
#define REGATTA_TESTS_TRACKER_CORE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "tracker/tracker_core.h"

namespace regatta {

// A FleetStore that outlives the cores that use it.
class MemoryFleetStore : public FleetStore {
 public:
  int64_t tracker_epoch() const override { return epoch; }
  const std::string& lease_secret() const override { return secret; }
  std::vector<KnownAgent> Agents() const override {
    std::vector<KnownAgent> list;
    for (const auto& [id, agent] : agents) list.push_back(agent);
    return list;
  }
  absl::Status Put(absl::Span<const KnownAgent> put) override {
    ++puts;
    if (!error.ok()) return error;
    for (const KnownAgent& agent : put) agents[agent.agent_id] = agent;
    return absl::OkStatus();
  }
  absl::Status Forget(const std::string& agent_id) override {
    agents.erase(agent_id);
    return absl::OkStatus();
  }

  std::vector<v1::DeviceStanding> Devices() const override {
    std::vector<v1::DeviceStanding> list;
    for (const auto& [id, device] : devices) list.push_back(device);
    return list;
  }
  absl::Status PutDevices(absl::Span<const v1::DeviceStanding> put,
                          absl::Span<const v1::DeviceEvent> news) override {
    if (!error.ok()) return error;
    for (const auto& device : put) devices[device.device_id()] = device;
    events.insert(events.end(), news.begin(), news.end());
    return absl::OkStatus();
  }
  absl::Status ForgetDevice(const std::string& device_id) override {
    devices.erase(device_id);
    return absl::OkStatus();
  }
  const std::deque<v1::DeviceEvent>& Events() const override { return events; }

  int64_t epoch = 1;
  std::string secret = "a secret of this test";
  int puts = 0;
  absl::Status error;
  std::map<std::string, KnownAgent> agents;
  std::map<std::string, v1::DeviceStanding> devices;
  std::deque<v1::DeviceEvent> events;
};

// What one session or stream was sent, and how it ended.
struct AgentInbox {
  std::vector<v1::TrackerMessage> messages;
  std::optional<absl::Status> closed;
};
struct ServerInbox {
  std::vector<v1::DispatchEvent> events;
  std::optional<absl::Status> closed;
};

class CoreTest : public ::testing::Test {
 protected:
  static constexpr char kClass[] = "znver4-2c";
  static constexpr char kCompiler[] = "c1";

  CoreTest() {
    options_.fleet.auto_approve.all = true;
    Restart();
  }

  // A tracker that died and came back with the same store. Nobody is
  // connected to it.
  void Restart() {
    core_.reset();
    ++store_.epoch;
    core_ = std::make_unique<TrackerCore>(options_, clock_, random_, store_);
    agents_.clear();
    servers_.clear();
  }
  // As Restart, after a change of options_.
  void Reconfigure() { Restart(); }

  void Drain() {
    for (Action& action : core_->TakeActions()) {
      if (auto* a = std::get_if<SendToAgent>(&action)) {
        agents_[a->session].messages.push_back(a->message);
      } else if (auto* c = std::get_if<CloseSession>(&action)) {
        agents_[c->session].closed = c->status;
      } else if (auto* s = std::get_if<SendToServer>(&action)) {
        servers_[s->stream].events.push_back(s->event);
      } else if (auto* d = std::get_if<CloseServer>(&action)) {
        servers_[d->stream].closed = d->status;
      } else if (auto* p = std::get_if<SwitchPower>(&action)) {
        switched_.push_back(*p);
      } else if (auto* n = std::get_if<Announce>(&action)) {
        announced_.push_back(n->event);
      } else {
        refusals_.push_back(std::get<Refusal>(action));
      }
    }
  }

  // --- time
  // In steps of a tick, so that no stall is seen.
  void Wait(absl::Duration d) {
    for (absl::Duration left = d; left > absl::ZeroDuration();
         left -= options_.tick) {
      clock_.Advance(std::min(left, options_.tick));
      core_->Tick();
      Drain();
    }
  }

  // --- agents
  static v1::DeviceInfo MakeDevice(const std::string& id, int credit = 1,
                                   const std::string& device_class = kClass) {
    v1::DeviceInfo device;
    device.set_device_id(id);
    device.set_device_class(device_class);
    device.set_target("cpu x86_64");
    device.set_credit(credit);
    device.set_health("ok");
    return device;
  }
  static v1::Hello MakeHello(const std::string& agent,
                             const std::vector<v1::DeviceInfo>& devices,
                             const std::string& instance = "i1") {
    v1::Hello hello;
    hello.set_protocol_version(v1::PROTOCOL_VERSION_CURRENT);
    hello.set_agent_id(agent);
    hello.set_instance_id(instance);
    hello.set_boot_id("boot");
    hello.set_compiler_version(kCompiler);
    hello.set_space("cpu");
    hello.set_space_version(1);
    for (const auto& device : devices) *hello.add_devices() = device;
    return hello;
  }
  SessionId OpenSession() {
    const SessionId session{++last_id_};
    core_->SessionOpened(session);
    return session;
  }
  SessionId Connect(const v1::Hello& hello) {
    const SessionId session = OpenSession();
    v1::AgentMessage message;
    *message.mutable_hello() = hello;
    Say(session, message);
    return session;
  }
  // An agent "aID" with one device "dID".
  // The board of "ID" comes back after its n-th boot.
  SessionId Boot(const std::string& id, int n) {
    v1::Hello hello =
        MakeHello("a" + id, {MakeDevice("d" + id)}, absl::StrCat("i", n));
    hello.set_boot_id(absl::StrCat("boot ", n));
    return Connect(hello);
  }
  v1::Trust Trust(const std::string& device_id) {
    return Status(device_id).standing().trust();
  }
  SessionId ConnectBoard(const std::string& id, int credit = 1) {
    return Connect(MakeHello("a" + id, {MakeDevice("d" + id, credit)}));
  }
  void Say(SessionId session, const v1::AgentMessage& message) {
    core_->AgentSaid(session, message);
    Drain();
  }
  void Disconnect(SessionId session) {
    core_->SessionClosed(session);
    Drain();
  }
  void Accept(SessionId session, const v1::Assignment& assignment,
              bool accepted = true, const std::string& reason = "") {
    v1::AgentMessage message;
    v1::AssignmentReply* reply = message.mutable_assignment_reply();
    reply->set_assignment_id(assignment.assignment_id());
    reply->set_lease_epoch(assignment.lease_epoch());
    reply->set_accepted(accepted);
    reply->set_reason(reason);
    Say(session, message);
  }
  void Beat(SessionId session, const std::vector<std::string>& held = {},
            int64_t work_ticks = 0, int64_t quiet_ms = 0) {
    v1::AgentMessage message;
    v1::Heartbeat* beat = message.mutable_heartbeat();
    beat->set_sequence(++beats_);
    beat->set_work_ticks(work_ticks);
    beat->set_quiet_ms(quiet_ms);
    for (const auto& id : held) beat->add_held_assignment_ids(id);
    Say(session, message);
  }
  static v1::SpooledResult MakeResult(const v1::Assignment& assignment,
                                      int index, bool last,
                                      v1::Outcome outcome = v1::OUTCOME_OK) {
    v1::SpooledResult spooled;
    spooled.set_assignment_id(assignment.assignment_id());
    spooled.set_last(last);
    v1::TrialResult* result = spooled.mutable_result();
    *result->mutable_spec() = assignment.trials(index);
    result->set_outcome(outcome);
    result->set_attempt(assignment.attempt());
    result->set_lease_epoch(assignment.lease_epoch());
    result->set_device_id(assignment.device_id());
    result->set_time_ns(1000);
    return spooled;
  }
  void SendResults(SessionId session,
                   const std::vector<v1::SpooledResult>& results) {
    v1::AgentMessage message;
    for (const auto& r : results)
      *message.mutable_result_batch()->add_results() = r;
    Say(session, message);
  }
  // One result for each trial, the last one marked.
  void Finish(SessionId session, const v1::Assignment& assignment) {
    std::vector<v1::SpooledResult> results;
    for (int i = 0; i < assignment.trials_size(); ++i) {
      results.push_back(
          MakeResult(assignment, i, i + 1 == assignment.trials_size()));
    }
    SendResults(session, results);
  }
  static v1::HeldAssignment Held(const v1::Assignment& assignment) {
    v1::HeldAssignment held;
    held.set_assignment_id(assignment.assignment_id());
    held.set_attempt(assignment.attempt());
    held.set_lease_epoch(assignment.lease_epoch());
    held.set_started(true);
    held.set_device_id(assignment.device_id());
    return held;
  }

  // --- servers
  StreamId Attach(const std::string& server_id = "log1") {
    const StreamId stream{++last_id_};
    core_->ServerOpened(stream);
    v1::DispatchRequest request;
    request.mutable_attach()->set_server_id(server_id);
    Ask(stream, request);
    return stream;
  }
  void Ask(StreamId stream, const v1::DispatchRequest& request) {
    core_->ServerSaid(stream, request);
    Drain();
  }
  static v1::Work MakeWork(int64_t job, int64_t ordinal, int trials = 1,
                           int priority = 0) {
    v1::Work work;
    work.set_work_id(absl::StrCat(job, "/0/", ordinal));
    work.set_job_id(job);
    work.set_priority(priority);
    work.set_device_class(kClass);
    work.set_compiler_version(kCompiler);
    work.set_space("cpu");
    work.set_space_version(1);
    work.set_mode(v1::ASSIGNMENT_MODE_SCREEN);
    for (int i = 0; i < trials; ++i) {
      v1::TrialSpec* trial = work.add_trials();
      trial->set_trial_id(absl::StrCat(job, "/0/", ordinal + i));
      trial->set_job_id(job);
      trial->set_workload("matmul(m=4,n=4,k=4)");
    }
    return work;
  }
  void Submit(StreamId stream, const std::vector<v1::Work>& works) {
    v1::DispatchRequest request;
    for (const auto& work : works) *request.mutable_submit()->add_work() = work;
    Ask(stream, request);
  }
  void CancelJob(StreamId stream, int64_t job) {
    v1::DispatchRequest request;
    request.mutable_cancel()->set_job_id(job);
    Ask(stream, request);
  }
  void Commit(StreamId stream, const std::vector<v1::TrialResult>& results,
              v1::AckStatus status = v1::ACK_STATUS_STORED) {
    v1::DispatchRequest request;
    for (const auto& result : results) {
      v1::TrialAck* ack = request.mutable_commit_ack()->add_acks();
      ack->set_trial_id(result.spec().trial_id());
      ack->set_attempt(result.attempt());
      ack->set_status(status);
    }
    Ask(stream, request);
  }

  // --- what was received; each takes it out of the inbox
  std::vector<v1::Assignment> Assigned(SessionId session) {
    std::vector<v1::Assignment> found;
    for (const auto& m : agents_[session].messages) {
      if (m.has_assign()) found.push_back(m.assign().assignment());
    }
    std::erase_if(agents_[session].messages,
                  [](const auto& m) { return m.has_assign(); });
    return found;
  }
  v1::Assignment OneAssigned(SessionId session) {
    std::vector<v1::Assignment> found = Assigned(session);
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? v1::Assignment() : found.front();
  }
  v1::Welcome Welcomed(SessionId session) {
    for (const auto& m : agents_[session].messages) {
      if (m.has_welcome()) return m.welcome();
    }
    ADD_FAILURE() << "no Welcome";
    return {};
  }
  std::vector<v1::TrialAck> Acks(SessionId session) {
    std::vector<v1::TrialAck> found;
    for (const auto& m : agents_[session].messages) {
      for (const auto& ack : m.result_ack().acks()) found.push_back(ack);
    }
    std::erase_if(agents_[session].messages,
                  [](const auto& m) { return m.has_result_ack(); });
    return found;
  }
  std::vector<std::string> Cancelled(SessionId session) {
    std::vector<std::string> found;
    for (const auto& m : agents_[session].messages) {
      for (const auto& id : m.cancel().assignment_ids()) found.push_back(id);
    }
    std::erase_if(agents_[session].messages,
                  [](const auto& m) { return m.has_cancel(); });
    return found;
  }
  v1::HeartbeatAck LastBeatAck(SessionId session) {
    v1::HeartbeatAck last;
    for (const auto& m : agents_[session].messages) {
      if (m.has_heartbeat_ack()) last = m.heartbeat_ack();
    }
    return last;
  }
  std::vector<v1::TrialResult> Results(StreamId stream) {
    std::vector<v1::TrialResult> found;
    for (const auto& e : servers_[stream].events) {
      for (const auto& r : e.results().results()) found.push_back(r);
    }
    std::erase_if(servers_[stream].events,
                  [](const auto& e) { return e.has_results(); });
    return found;
  }
  std::optional<v1::WaitReport> LastWaits(StreamId stream) {
    std::optional<v1::WaitReport> last;
    for (const auto& e : servers_[stream].events) {
      if (e.has_wait_report()) last = e.wait_report();
    }
    return last;
  }
  // The reason for the only job that waits.
  std::string WaitReason(StreamId stream) {
    const auto waits = LastWaits(stream);
    if (!waits || waits->jobs_size() != 1) return "not exactly one job waits";
    return waits->jobs(0).reason().text();
  }
  v1::DeviceStatus Status(const std::string& device_id) {
    const v1::ListDevicesResponse list = core_->ListDevices();
    for (const auto& status : list.devices()) {
      if (status.info().device_id() == device_id) return status;
    }
    ADD_FAILURE() << "no device " << device_id;
    return {};
  }

  TrackerOptions options_;
  FakeClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  Random random_{1};
  MemoryFleetStore store_;
  std::unique_ptr<TrackerCore> core_;
  std::map<SessionId, AgentInbox> agents_;
  std::map<StreamId, ServerInbox> servers_;
  std::vector<Refusal> refusals_;
  std::vector<SwitchPower> switched_;
  std::vector<v1::DeviceEvent> announced_;
  uint64_t last_id_ = 0;
  int64_t beats_ = 0;
};

inline std::vector<std::string> Ids(const std::vector<v1::Assignment>& list) {
  std::vector<std::string> ids;
  for (const auto& a : list) ids.push_back(a.assignment_id());
  return ids;
}

}  // namespace regatta

#endif  // REGATTA_TESTS_TRACKER_CORE_FIXTURE_H_
