#include "tests/tracker/simulation.h"

#include <algorithm>

namespace regatta {

Simulation::Simulation(uint64_t seed)
    : seed_(seed),
      random_(seed),
      clock_(absl::FromUnixSeconds(1'800'000'000)),
      tracker_random_(seed + 1) {
  // In some seeds boards wait for somebody to approve them.
  options_.fleet.auto_approve.all = Chance(0.8);
  canaries_ = Chance(0.5);
  // In some seeds the buffer is so small that it runs over.
  if (Chance(0.25)) options_.max_buffered_results = 3 + random_.Below(6);
  const int agents = 1 + static_cast<int>(random_.Below(4));
  for (int a = 0; a < agents; ++a) {
    auto agent = std::make_unique<AgentModel>();
    agent->id = absl::StrCat("a", a);
    agent->lists_spooled = Chance(0.5);
    const int devices = Chance(0.3) ? 2 : 1;
    for (int d = 0; d < devices; ++d) {
      v1::DeviceInfo device;
      device.set_device_id(absl::StrCat("d", a, "-", d));
      // The first board's first device is x, so that x always exists.
      device.set_device_class(a + d == 0 || Chance(0.6) ? "x" : "y");
      device.set_credit(1 + static_cast<int>(random_.Below(2)));
      agent->devices.push_back(device);
    }
    agents_.push_back(std::move(agent));
  }
  const int servers = Chance(0.2) ? 2 : 1;
  for (int s = 0; s < servers; ++s) {
    auto server = std::make_unique<ServerModel>();
    server->id = absl::StrCat("log", s);
    MakeJobs(*server);
    servers_.push_back(std::move(server));
  }
  if (Chance(0.3)) {
    const auto& works = servers_[0]->works;
    poison_trial_ = works.begin()->second.trials(0).trial_id();
    poison_reboots_ = Chance(0.5);
  }
}

Simulation::~Simulation() = default;

SimulationReport Simulation::Run() {
  StartTracker();
  for (auto& agent : agents_) ConnectAgent(*agent);
  for (auto& server : servers_) ConnectServer(*server);
  After(options_.tick, [this] { Tick(); });
  After(Between(500, 5000), [this] { Fault(); });

  RunUntil(clock_.Steady() + absl::Seconds(150));
  faults_on_ = false;
  store_.error = absl::OkStatus();
  // Healed: everything must end, and every spool must empty.
  const SteadyTime limit = clock_.Steady() + absl::Minutes(30);
  while (!AllDone() && clock_.Steady() < limit) {
    LetAllWork();
    RunUntil(clock_.Steady() + absl::Seconds(10));
  }
  if (!AllDone()) {
    for (const auto& server : servers_) {
      for (const auto& [id, work] : server->works) {
        if (!server->Committed(work)) {
          Violation(
              absl::StrCat("work ", id, " of ", server->id, " never ended"));
        }
      }
    }
    for (const auto& agent : agents_) {
      if (!agent->spool.empty()) {
        Violation(absl::StrCat(agent->spool.size(), " results of ", agent->id,
                               " were never acknowledged"));
      }
      if (!agent->held.empty()) {
        Violation(absl::StrCat(agent->id, " still holds ",
                               agent->held[0].assignment.assignment_id()));
      }
    }
  }
  if (!poison_trial_.empty() && AllDone()) {
    const v1::Outcome outcome = servers_[0]->log.at(poison_trial_);
    if (outcome != v1::OUTCOME_AGENT_LOST && outcome != v1::OUTCOME_CANCELLED &&
        (!poison_reboots_ || (outcome != v1::OUTCOME_CRASHED &&
                              outcome != v1::OUTCOME_DEVICE_FAULT))) {
      Violation("the poison trial ended as " + v1::Outcome_Name(outcome));
    }
  }
  return report_;
}

void Simulation::Violation(const std::string& what) {
  report_.violations.push_back(absl::StrCat(
      "seed ", seed_, " at ", clock_.Steady().ns / 1'000'000, " ms: ", what));
}

bool Simulation::AllDone() const {
  for (const auto& server : servers_) {
    for (const auto& [id, work] : server->works) {
      if (!server->Committed(work)) return false;
    }
  }
  for (const auto& agent : agents_) {
    if (!agent->spool.empty() || !agent->held.empty()) return false;
  }
  if (core_ == nullptr) return false;
  const v1::ListDevicesResponse list = core_->ListDevices();
  return std::all_of(list.devices().begin(), list.devices().end(),
                     [](const auto& d) { return d.running() == 0; });
}

// --- events

void Simulation::After(absl::Duration delay, Event event) {
  events_.emplace((clock_.Steady() + delay).ns, std::move(event));
}

absl::Duration Simulation::Between(int low_ms, int high_ms) {
  return absl::Milliseconds(
      low_ms + static_cast<int>(random_.Below(high_ms - low_ms + 1)));
}

void Simulation::RunUntil(SteadyTime end) {
  while (!events_.empty() && events_.begin()->first <= end.ns) {
    auto node = events_.extract(events_.begin());
    const int64_t late = node.key() - clock_.Steady().ns;
    if (late > 0) clock_.Advance(absl::Nanoseconds(late));
    node.mapped()();
    if (report_.violations.size() > 5) {
      events_.clear();
      return;
    }
  }
  if (clock_.Steady() < end) clock_.Advance(end - clock_.Steady());
}

// --- tracker

void Simulation::StartTracker() {
  ++store_.epoch;
  ++tracker_run_;
  fleet_watch_.Restart();
  core_ =
      std::make_unique<TrackerCore>(options_, clock_, tracker_random_, store_);
}

void Simulation::KillTracker() {
  if (core_ == nullptr) return;
  ++report_.counts["tracker restarts"];
  core_.reset();
  for (auto& agent : agents_) BreakAgent(*agent, false);
  for (auto& server : servers_) BreakServer(*server);
  After(Between(10, 5000), [this] { StartTracker(); });
}

void Simulation::Tick() {
  if (core_ != nullptr && clock_.Steady() >= stalled_until_) {
    const bool told =
        fleet_watch_.Due(clock_.Steady(), options_.fleet_change_interval);
    Input([](TrackerCore& core) { core.Tick(); });
    core_->CheckIndices();
    if (const std::string wrong =
            told ? fleet_watch_.Compare(core_->ListDevices()) : "";
        !wrong.empty()) {
      Violation(wrong);
    }
    if (told && fleet_watch_.servers() > 0) ++report_.counts["fleets compared"];
  }
  After(options_.tick, [this] { Tick(); });
}

void Simulation::Input(const std::function<void(TrackerCore&)>& input) {
  if (core_ == nullptr) return;
  if (clock_.Steady() < stalled_until_) {
    // Waits in the socket, in order, until the process goes on.
    const int64_t run = tracker_run_;
    After(stalled_until_ - clock_.Steady(), [this, run, input] {
      if (run == tracker_run_) Input(input);
    });
    return;
  }
  input(*core_);
  for (const Action& action : core_->TakeActions()) Deliver(action);
}

void Simulation::Deliver(const Action& action) {
  fleet_watch_.Take(action, clock_.Steady());
  // Messages of one connection arrive in order, each after a delay.
  const auto at = [this](SteadyTime& last) {
    last = std::max(last, clock_.Steady() + Between(0, 40));
    return last - clock_.Steady();
  };
  for (auto& owned : agents_) {
    AgentModel* agent = owned.get();
    const int64_t connection = agent->connection;
    const SessionId session{static_cast<uint64_t>(connection)};
    if (connection == 0) continue;
    if (auto* send = std::get_if<SendToAgent>(&action);
        send != nullptr && send->session == session) {
      if (send->message.has_assign()) {
        CheckAssign(send->message.assign().assignment());
      }
      After(at(agent->last_to_agent),
            [this, agent, connection, message = send->message] {
              if (agent->connection == connection) AgentHears(*agent, message);
            });
    } else if (auto* close = std::get_if<CloseSession>(&action);
               close != nullptr && close->session == session) {
      if (close->status.code() == absl::StatusCode::kInvalidArgument) {
        Violation(absl::StrCat("an honest agent was refused: ",
                               std::string(close->status.message())));
      }
      After(at(agent->last_to_agent), [this, agent, connection] {
        if (agent->connection == connection) BreakAgent(*agent, false);
      });
    }
  }
  for (auto& owned : servers_) {
    ServerModel* server = owned.get();
    const int64_t connection = server->connection;
    const StreamId stream{static_cast<uint64_t>(connection)};
    if (connection == 0) continue;
    if (auto* send = std::get_if<SendToServer>(&action);
        send != nullptr && send->stream == stream) {
      After(at(server->last_to_server),
            [this, server, connection, event = send->event] {
              if (server->connection == connection) ServerHears(*server, event);
            });
    } else if (auto* close = std::get_if<CloseServer>(&action);
               close != nullptr && close->stream == stream) {
      if (close->status.code() != absl::StatusCode::kAborted) {
        Violation(absl::StrCat("an honest server was refused: ",
                               std::string(close->status.message())));
      }
      After(at(server->last_to_server), [this, server, connection] {
        if (server->connection == connection) BreakServer(*server);
      });
    }
  }
}

void Simulation::Fault() {
  if (!faults_on_) return;
  AgentModel& agent = *agents_[random_.Below(agents_.size())];
  ServerModel& server = *servers_[random_.Below(servers_.size())];
  switch (random_.Below(12)) {
    case 0:
    case 1:
      ++report_.counts["connections cut"];
      BreakAgent(agent, /*tracker_notices=*/true);
      break;
    case 2:
      ++report_.counts["half-open connections"];
      BreakAgent(agent, /*tracker_notices=*/false);
      break;
    case 3:
    case 4:
      KillAgent(agent);
      break;
    case 5:
      KillTracker();
      break;
    case 6:
      KillServer(server);
      break;
    case 7:
      ++report_.counts["tracker stalls"];
      stalled_until_ = clock_.Steady() + Between(100, 8000);
      if (Chance(0.5)) {
        store_.error = absl::ResourceExhaustedError("disk full");
        After(Between(100, 4000), [this] { store_.error = absl::OkStatus(); });
      }
      break;
    case 8:
      if (server.connection != 0 && Chance(0.5)) {
        CancelJob(server, 1 + static_cast<int64_t>(random_.Below(3)));
      } else {
        ++report_.counts["server streams cut"];
        BreakServer(server);
      }
      break;
    case 9:
      ++report_.counts["reboots"];
      ++agent.boot;
      KillAgent(agent);
      break;
    case 10:
    case 11:
      Operate();
      break;
  }
  After(Between(200, 12'000), [this] { Fault(); });
}

}  // namespace regatta
