// The model of an agent: obeys the protocol, keeps its spool on disk.
#include <algorithm>

#include "tests/tracker/simulation.h"

namespace regatta {

void Simulation::ConnectAgent(AgentModel& agent) {
  if (!agent.up || agent.connection != 0) return;
  if (core_ == nullptr) {
    const int64_t instance = agent.instance;
    After(Between(100, 2000), [this, &agent, instance] {
      if (agent.instance == instance) ConnectAgent(agent);
    });
    return;
  }
  agent.connection = static_cast<int64_t>(++last_connection_);
  agent.welcomed = false;
  agent.last_to_tracker = agent.last_to_agent = clock_.Steady();
  const SessionId session{static_cast<uint64_t>(agent.connection)};
  Input([session](TrackerCore& core) { core.SessionOpened(session); });

  v1::AgentMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_protocol_version(v1::PROTOCOL_VERSION_CURRENT);
  hello->set_agent_id(agent.id);
  hello->set_instance_id(absl::StrCat("i", agent.instance));
  hello->set_boot_id(absl::StrCat("b", agent.boot));
  hello->set_compiler_version("c1");
  hello->set_space("cpu");
  hello->set_space_version(1);
  for (const auto& device : agent.devices) *hello->add_devices() = device;
  std::set<std::string> listed;
  for (const Holding& holding : agent.held) {
    v1::HeldAssignment* held = hello->add_held();
    held->set_assignment_id(holding.assignment.assignment_id());
    held->set_attempt(holding.assignment.attempt());
    held->set_lease_epoch(holding.assignment.lease_epoch());
    held->set_device_id(holding.assignment.device_id());
    listed.insert(held->assignment_id());
  }
  for (const auto& spooled : agent.spool) {
    if (!agent.lists_spooled ||
        !listed.insert(spooled.assignment_id()).second) {
      continue;
    }
    v1::HeldAssignment* held = hello->add_held();
    held->set_assignment_id(spooled.assignment_id());
    held->set_attempt(spooled.result().attempt());
    held->set_lease_epoch(spooled.result().lease_epoch());
    held->set_device_id(spooled.result().device_id());
  }
  hello->set_spooled_results(static_cast<int64_t>(agent.spool.size()));
  ToTracker(agent, message);
}

void Simulation::ToTracker(AgentModel& agent, v1::AgentMessage message) {
  if (agent.connection == 0) return;
  const int64_t connection = agent.connection;
  const int64_t run = tracker_run_;
  const SessionId session{static_cast<uint64_t>(connection)};
  agent.last_to_tracker =
      std::max(agent.last_to_tracker, clock_.Steady() + Between(0, 40));
  After(agent.last_to_tracker - clock_.Steady(),
        [this, &agent, connection, run, session, message = std::move(message)] {
          // What was under way when the connection broke is lost.
          if (agent.connection != connection || run != tracker_run_) return;
          Input([session, message](TrackerCore& core) {
            core.AgentSaid(session, message);
          });
        });
}

void Simulation::BreakAgent(AgentModel& agent, bool tracker_notices) {
  if (agent.connection == 0) return;
  const SessionId session{static_cast<uint64_t>(agent.connection)};
  const int64_t run = tracker_run_;
  agent.connection = 0;
  agent.welcomed = false;
  if (tracker_notices) {
    After(Between(0, 500), [this, session, run] {
      if (run == tracker_run_) {
        Input([session](TrackerCore& core) { core.SessionClosed(session); });
      }
    });
  }
  // Mostly back soon, sometimes only when it is lost.
  const int64_t instance = agent.instance;
  After(Chance(0.1) ? Between(50'000, 90'000) : Between(20, 8000),
        [this, &agent, instance] {
          if (agent.instance == instance) ConnectAgent(agent);
        });
}

void Simulation::KillAgent(AgentModel& agent) {
  if (!agent.up) return;
  ++report_.counts["agent kills"];
  agent.up = false;
  ++agent.instance;
  // The system closes the connection of a dead process.
  BreakAgent(agent, /*tracker_notices=*/true);
  agent.held.clear();
  agent.running.clear();
  const int64_t instance = agent.instance;
  After(Between(100, 4000), [this, &agent, instance] {
    if (agent.instance != instance) return;
    agent.up = true;
    ConnectAgent(agent);
  });
}

void Simulation::AgentHears(AgentModel& agent,
                            const v1::TrackerMessage& message) {
  switch (message.message_case()) {
    case v1::TrackerMessage::kWelcome:
      AgentWelcomed(agent, message.welcome());
      break;
    case v1::TrackerMessage::kAssign:
      AgentAssigned(agent, message.assign().assignment());
      break;
    case v1::TrackerMessage::kHeartbeatAck:
      for (const auto& id : message.heartbeat_ack().renewed()) {
        for (Holding& holding : agent.held) {
          if (holding.assignment.assignment_id() == id) {
            holding.leased_at = clock_.Steady();
          }
        }
      }
      for (const auto& id : message.heartbeat_ack().abandoned()) {
        Drop(agent, id);
      }
      for (const auto& d : agent.devices) StartNext(agent, d.device_id());
      break;
    case v1::TrackerMessage::kResultAck:
      for (const auto& ack : message.result_ack().acks()) {
        std::erase_if(agent.spool, [&](const v1::SpooledResult& spooled) {
          if (spooled.result().spec().trial_id() != ack.trial_id() ||
              spooled.result().attempt() != ack.attempt()) {
            return false;
          }
          // Judged by the tracker, or not the trial's last word: it is run
          // again.
          if (ServerOf(spooled.assignment_id()) == kCanaryServer ||
              ack.status() == v1::ACK_STATUS_REJECTED) {
            return true;
          }
          const auto server = std::find_if(
              servers_.begin(), servers_.end(), [&](const auto& s) {
                return s->id == ServerOf(spooled.assignment_id());
              });
          // With two servers an ack may mean the other's trial of this name;
          // the tracker still has that result or runs it again.
          if (servers_.size() == 1 &&
              !(*server)->log.contains(ack.trial_id())) {
            Violation(absl::StrCat("trial ", ack.trial_id(),
                                   " was acknowledged but is not stored"));
          }
          return true;
        });
      }
      break;
    case v1::TrackerMessage::kCancel:
      for (const auto& id : message.cancel().assignment_ids()) Drop(agent, id);
      break;
    case v1::TrackerMessage::kDrain:
      AgentDrained(agent, message.drain());
      break;
    default:
      break;
  }
}

void Simulation::AgentDrained(AgentModel& agent, const v1::Drain& drain) {
  ++report_.counts["drains"];
  for (const std::string& device_id : drain.device_ids()) {
    bool first = true;
    for (auto it = agent.held.begin(); it != agent.held.end();) {
      if (it->assignment.device_id() != device_id) {
        ++it;
        continue;
      }
      it->finishing = true;
      const bool runs =
          std::exchange(first, false) && agent.running.contains(device_id);
      if (runs) {
        ++it;
        continue;
      }
      GiveBack(agent, *it);
      it = agent.held.erase(it);
    }
  }
}

void Simulation::GiveBack(AgentModel& agent, const Holding& holding) {
  v1::AgentMessage message;
  v1::Release* release = message.mutable_release();
  release->set_assignment_id(holding.assignment.assignment_id());
  release->set_lease_epoch(holding.assignment.lease_epoch());
  release->set_reason("drained");
  ToTracker(agent, std::move(message));
}

void Simulation::AgentWelcomed(AgentModel& agent, const v1::Welcome& welcome) {
  agent.welcomed = true;
  for (const auto& verdict : welcome.verdicts()) {
    for (Holding& holding : agent.held) {
      if (holding.assignment.assignment_id() == verdict.assignment_id()) {
        holding.leased_at = clock_.Steady();
      }
    }
    if (verdict.verdict() == v1::VERDICT_ABANDON) {
      ++report_.counts["abandoned"];
      Drop(agent, verdict.assignment_id());
    } else {
      ++report_.counts["continued"];
    }
  }
  SendSpool(agent);
  for (const auto& d : agent.devices) StartNext(agent, d.device_id());
  AgentBeats(agent, agent.connection);
}

void Simulation::AgentBeats(AgentModel& agent, int64_t connection) {
  if (agent.connection != connection) return;
  v1::AgentMessage message;
  for (const Holding& holding : agent.held) {
    message.mutable_heartbeat()->add_held_assignment_ids(
        holding.assignment.assignment_id());
  }
  message.mutable_heartbeat()->set_sequence(1);
  ToTracker(agent, std::move(message));
  After(Between(9000, 11'000),
        [this, &agent, connection] { AgentBeats(agent, connection); });
}

void Simulation::SendSpool(AgentModel& agent) {
  for (size_t i = 0; i < agent.spool.size(); i += 8) {
    v1::AgentMessage message;
    for (size_t j = i; j < std::min(i + 8, agent.spool.size()); ++j) {
      *message.mutable_result_batch()->add_results() = agent.spool[j];
    }
    ToTracker(agent, std::move(message));
  }
}

void Simulation::AgentAssigned(AgentModel& agent,
                               const v1::Assignment& assignment) {
  Drop(agent, assignment.assignment_id());  // of an earlier epoch
  const auto device = std::find_if(
      agent.devices.begin(), agent.devices.end(),
      [&](const auto& d) { return d.device_id() == assignment.device_id(); });
  if (device == agent.devices.end()) {
    Violation("an assignment for a device that the agent does not have");
    return;
  }
  if (assignment.trials(0).device_class() != device->device_class()) {
    Violation("an assignment for another class");
  }
  const int64_t load = std::count_if(
      agent.held.begin(), agent.held.end(), [&](const Holding& holding) {
        return holding.assignment.device_id() == assignment.device_id();
      });
  if (load >= device->credit()) {
    Violation(absl::StrCat(assignment.assignment_id(), " is beyond the credit ",
                           device->credit(), " of ", device->device_id()));
  }
  v1::AgentMessage message;
  v1::AssignmentReply* reply = message.mutable_assignment_reply();
  reply->set_assignment_id(assignment.assignment_id());
  reply->set_lease_epoch(assignment.lease_epoch());
  reply->set_accepted(!Chance(0.03));
  ToTracker(agent, message);
  if (!reply->accepted()) {
    ++report_.counts["refused"];
    return;
  }
  Holding& holding = agent.held.emplace_back();
  holding.assignment = assignment;
  holding.leased_at = clock_.Steady();
  StartNext(agent, assignment.device_id());
}

void Simulation::Drop(AgentModel& agent, const std::string& assignment_id) {
  for (auto it = agent.held.begin(); it != agent.held.end(); ++it) {
    if (it->assignment.assignment_id() != assignment_id) continue;
    const std::string device_id = it->assignment.device_id();
    const bool was_running =
        it == agent.held.begin() ||
        std::none_of(agent.held.begin(), it, [&](const Holding& holding) {
          return holding.assignment.device_id() == device_id;
        });
    agent.held.erase(it);
    if (was_running) agent.running.erase(device_id);
    StartNext(agent, device_id);
    return;
  }
}

// One trial at a time per device, of the assignment that came first.
void Simulation::StartNext(AgentModel& agent, const std::string& device_id) {
  if (!agent.up || agent.running.contains(device_id)) return;
  const auto holding = std::find_if(
      agent.held.begin(), agent.held.end(),
      [&](const Holding& h) { return h.assignment.device_id() == device_id; });
  if (holding == agent.held.end()) return;
  if (holding->finishing) return;
  // Past 80 % of its lease nothing new is started.
  if (clock_.Steady() - holding->leased_at > 0.8 * options_.lease) return;
  const int64_t run = ++agent.last_run;
  agent.running[device_id] = run;
  ++report_.counts["runs"];
  const bool poison =
      holding->assignment.trials(holding->next).trial_id() == poison_trial_ &&
      ServerOf(holding->assignment.assignment_id()) == servers_[0]->id;
  const int64_t instance = agent.instance;
  if (poison) {
    ++report_.counts["poison runs"];
    After(Between(100, 200), [this, &agent, instance, device_id, run] {
      const auto it = agent.running.find(device_id);
      if (agent.instance == instance && it != agent.running.end() &&
          it->second == run) {
        if (poison_reboots_) ++agent.boot;
        KillAgent(agent);
      }
    });
    return;
  }
  After(Between(50, 1500), [this, &agent, instance, device_id, run] {
    if (agent.instance == instance) TrialDone(agent, device_id, run);
  });
}

void Simulation::TrialDone(AgentModel& agent, const std::string& device_id,
                           int64_t run) {
  const auto running = agent.running.find(device_id);
  if (running == agent.running.end() || running->second != run) return;
  agent.running.erase(running);
  const auto holding = std::find_if(
      agent.held.begin(), agent.held.end(),
      [&](const Holding& h) { return h.assignment.device_id() == device_id; });
  const v1::Assignment& assignment = holding->assignment;
  v1::SpooledResult spooled;
  spooled.set_assignment_id(assignment.assignment_id());
  v1::TrialResult* result = spooled.mutable_result();
  *result->mutable_spec() = assignment.trials(holding->next);
  result->set_outcome(v1::OUTCOME_OK);
  // Some canaries find a board slow; never one in ten, so none is taken out
  // for good.
  const bool canary = ServerOf(spooled.assignment_id()) == kCanaryServer;
  if (canary) ++report_.counts["canaries"];
  result->set_time_ns(canary && Chance(0.1) ? 2000 : 1000);
  result->set_attempt(assignment.attempt());
  result->set_lease_epoch(assignment.lease_epoch());
  result->set_device_id(device_id);
  const bool last = ++holding->next == assignment.trials_size();
  spooled.set_last(last);
  const bool give_back = holding->finishing && !last;
  const Holding held = *holding;
  if (last || give_back) agent.held.erase(holding);
  agent.spool.push_back(spooled);
  if (agent.welcomed) {
    v1::AgentMessage message;
    *message.mutable_result_batch()->add_results() = spooled;
    ToTracker(agent, std::move(message));
  }
  if (give_back) GiveBack(agent, held);
  StartNext(agent, device_id);
}

}  // namespace regatta
