// A whole fleet in one thread: the real tracker core between model agents and
// model servers, joined by connections that delay and break, on a simulated
// clock. Everything is derived from the seed.
//
// What a model keeps on disk survives its restarts: an agent its spool, a
// server its log and its jobs, the tracker its FleetStore. The rest is lost.
#ifndef REGATTA_TESTS_TRACKER_SIMULATION_H_
#define REGATTA_TESTS_TRACKER_SIMULATION_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "tests/tracker/core_fixture.h"
#include "tests/tracker/fleet_watch.h"
#include "tracker/tracker_core.h"

namespace regatta {

struct SimulationReport {
  // Broken promises, in words; empty when all is well.
  std::vector<std::string> violations;
  // For the test that the simulation itself sees faults.
  std::map<std::string, int> counts;
};

class Simulation {
 public:
  explicit Simulation(uint64_t seed);
  ~Simulation();
  SimulationReport Run();

 private:
  struct AgentModel;
  struct ServerModel;
  struct Holding;

  // --- events
  using Event = std::function<void()>;
  void After(absl::Duration delay, Event event);
  absl::Duration Between(int low_ms, int high_ms);
  bool Chance(double p) { return random_.Unit() < p; }
  void RunUntil(SteadyTime end);
  void Violation(const std::string& what);
  bool AllDone() const;

  // --- tracker (simulation.cc)
  void StartTracker();
  void KillTracker();
  void Tick();
  // Runs an input of the core, then sends what came out.
  void Input(const std::function<void(TrackerCore&)>& input);
  void Deliver(const Action& action);

  // --- agents (simulation_agent.cc)
  void ConnectAgent(AgentModel& agent);
  void BreakAgent(AgentModel& agent, bool tracker_notices);
  void KillAgent(AgentModel& agent);
  void ToTracker(AgentModel& agent, v1::AgentMessage message);
  void AgentHears(AgentModel& agent, const v1::TrackerMessage& message);
  void AgentWelcomed(AgentModel& agent, const v1::Welcome& welcome);
  void AgentAssigned(AgentModel& agent, const v1::Assignment& assignment);
  void AgentBeats(AgentModel& agent, int64_t connection);
  void SendSpool(AgentModel& agent);
  void StartNext(AgentModel& agent, const std::string& device_id);
  void TrialDone(AgentModel& agent, const std::string& device_id, int64_t run);
  void Drop(AgentModel& agent, const std::string& assignment_id);
  void AgentDrained(AgentModel& agent, const v1::Drain& drain);
  void GiveBack(AgentModel& agent, const Holding& holding);

  // --- servers (simulation_server.cc)
  void ConnectServer(ServerModel& server);
  void BreakServer(ServerModel& server);
  void KillServer(ServerModel& server);
  void ToTracker(ServerModel& server, v1::DispatchRequest request);
  void ServerHears(ServerModel& server, const v1::DispatchEvent& event);
  void MakeJobs(ServerModel& server);
  void SubmitWanted(ServerModel& server);
  void SubmitSome(ServerModel& server);
  void CancelJob(ServerModel& server, int64_t job);
  void CommitResults(ServerModel& server, const v1::Results& results);

  // Breaks something, then plans the next fault.
  void Fault();

  // --- operators (simulation_operator.cc)
  // One random command to one random device, whatever state it is in.
  void Operate();
  // Takes every hold off again, approves and releases.
  void LetAllWork();
  void Control(v1::ControlDevicesRequest request);
  // No work of jobs reaches a device that people or trust keep from it.
  void CheckAssign(const v1::Assignment& assignment);

  const uint64_t seed_;
  Random random_;
  FakeClock clock_;
  std::multimap<int64_t, Event> events_;
  TrackerOptions options_;
  MemoryFleetStore store_;
  Random tracker_random_;
  std::unique_ptr<TrackerCore> core_;  // null while it is down
  FleetWatch fleet_watch_;
  int64_t tracker_run_ = 0;
  SteadyTime stalled_until_;
  uint64_t last_connection_ = 0;
  bool faults_on_ = true;
  std::vector<std::unique_ptr<AgentModel>> agents_;
  std::vector<std::unique_ptr<ServerModel>> servers_;
  std::string poison_trial_;
  bool poison_reboots_ = false;  // the board, not only its agent
  bool canaries_ = false;
  SimulationReport report_;
};

// An assignment in an agent's hands.
struct Simulation::Holding {
  v1::Assignment assignment;
  bool finishing = false;  // starts nothing more
  int next = 0;            // trial to run next
  SteadyTime leased_at;
};

struct Simulation::AgentModel {
  std::string id;
  std::vector<v1::DeviceInfo> devices;
  bool lists_spooled = false;  // in Hello.held
  // On disk.
  std::vector<v1::SpooledResult> spool;
  // In memory.
  int64_t instance = 0;
  int64_t boot = 0;
  bool up = true;
  std::vector<Holding> held;
  std::map<std::string, int64_t> running;  // device -> run number
  int64_t last_run = 0;
  // Connection. 0: none.
  int64_t connection = 0;
  bool welcomed = false;
  SteadyTime last_to_tracker, last_to_agent;  // order within a direction
};

struct Simulation::ServerModel {
  std::string id;
  // On disk.
  std::map<std::string, v1::Work> works;   // by work id, all ever made
  std::set<std::string> submitted;         // by work id
  std::map<std::string, v1::Outcome> log;  // by trial id
  std::set<int64_t> cancelled_jobs;
  // Connection. 0: none.
  bool up = true;
  int64_t instance = 0;
  int64_t connection = 0;
  SteadyTime last_to_tracker, last_to_server;

  bool Committed(const v1::Work& work) const {
    for (const auto& trial : work.trials()) {
      if (!log.contains(trial.trial_id())) return false;
    }
    return true;
  }
};

}  // namespace regatta

#endif  // REGATTA_TESTS_TRACKER_SIMULATION_H_
