// The pure cores of a fleet together, in one thread on a simulated clock: the
// real tracker core, the real agent loops with their real spools, and a model
// of a server, joined by connections that delay and break. Everything follows
// from the seed.
//
// What a process keeps on disk survives its death: a board its spool (a loss of
// power takes what was not synced), the server its log and its jobs, the
// tracker its FleetStore.
//
// Checked, by the names that scenarios of faults use:
//  I1 every trial ends exactly once;
//  I2 what is acknowledged to a board is in the log, and what a board made
//     durable gets there;
//  I3 timed runs of one device do not overlap on one boot;
//  I4 no assignment is sent as more than the last attempt;
//  I5 what the log holds of boards is candidates' outcomes, what the tracker
//     says of its own is not;
//  I6 epochs of trackers never fall for a board, those of an assignment's
//  leases
//     grow with every dispatch;
//  I8 once all is healed everything ends within the restart window, two leases
//     and the time that the work itself takes;
//  I9 no queue grows: neither results of boards, nor what the tracker holds.
// (I7 is about processes, I10 about callers: other tests'.)
#ifndef REGATTA_TESTS_FLEET_SIM_CORE_SIMULATION_H_
#define REGATTA_TESTS_FLEET_SIM_CORE_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "tests/fleet_sim/ledger.h"
#include "tests/fleet_sim/sim_board.h"
#include "tests/tracker/core_fixture.h"
#include "tests/tracker/fleet_watch.h"
#include "tracker/tracker_core.h"

namespace regatta::fleet_sim {

class CoreSimulation {
 public:
  explicit CoreSimulation(uint64_t seed);
  ~CoreSimulation();

  struct Report {
    std::vector<std::string> violations;  // empty when all is well
    std::map<std::string, int> counts;    // what happened, by name
  };
  Report Run();

 private:
  class Board;
  using Event = std::function<void()>;

  void After(absl::Duration delay, Event event);
  absl::Duration Between(int low_ms, int high_ms);
  bool Chance(double p) { return random_.Unit() < p; }
  void RunFor(absl::Duration time);
  void Violation(const std::string& what);
  bool AllDone() const;

  // --- tracker
  void StartTracker();
  void KillTracker();
  void Tick();
  void Input(const std::function<void(TrackerCore&)>& input);
  void Deliver(const Action& action);
  void CheckAssign(const v1::Assignment& assignment);

  // --- server (core_server.cc)
  void MakeWork(bool has_y);  // for a second device class, too
  void ConnectServer();
  void BreakServer();
  void KillServer();
  void ToTracker(v1::DispatchRequest request);
  void ServerHears(const v1::DispatchEvent& event);
  void SubmitWanted();
  void SubmitSome();
  void CancelJob(int64_t job);
  void Commit(const v1::Results& results);
  void CheckRecord(const v1::TrialResult& result);
  bool Committed(const v1::Work& work) const;

  void Fault();

  const uint64_t seed_;
  Random random_;
  FakeClock clock_;
  std::multimap<int64_t, Event> events_;
  Report report_;

  TrackerOptions options_;
  MemoryFleetStore store_;
  Random tracker_random_;
  std::unique_ptr<TrackerCore> core_;  // null while it is down
  FleetWatch fleet_watch_;
  int64_t tracker_run_ = 0;
  SteadyTime stalled_until_;
  uint64_t last_connection_ = 0;
  bool faults_on_ = true;
  std::map<std::string, int64_t> lease_epochs_;  // latest, by assignment

  Ledger ledger_;
  std::vector<std::unique_ptr<Board>> boards_;

  struct ServerModel {
    // On disk.
    std::map<std::string, v1::Work> works;
    std::set<std::string> submitted;             // work ids
    std::map<std::string, v1::TrialResult> log;  // by trial id
    std::set<int64_t> cancelled;                 // jobs
    // In memory.
    bool up = true;
    int64_t instance = 0;
    int64_t connection = 0;  // 0: none
    SteadyTime last_to_tracker, last_to_server;
  } server_;
  // Timed windows by device and boot.
  std::map<std::string, std::map<int64_t, int64_t>> windows_;
};

}  // namespace regatta::fleet_sim

#endif  // REGATTA_TESTS_FLEET_SIM_CORE_SIMULATION_H_
