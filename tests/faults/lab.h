// A small lab in one thread on one simulated clock: the real TrackerCore,
// boards with the real AgentLoop on a real Spool, and models of what is around
// them: a board's runner, a server with its log, links that fail. A test says
// what breaks when, and looks at what came of it.
//
// While it runs, a lab watches what must always hold; Violations has what did
// not:
//  - a trial is stored once, and what an agent was told is stored is;
//  - no trial has more attempts than the tracker allows;
//  - two runs of one board never overlap;
//  - trackers of older epochs are not obeyed;
//  - work that a board still holds after a tracker's restart goes to no other
//    within the restart window.
//
// Not thread-safe.
#ifndef REGATTA_TESTS_FAULTS_LAB_H_
#define REGATTA_TESTS_FAULTS_LAB_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/random.h"
#include "device_agent/loop/agent_loop.h"
#include "device_agent/loop/spool.h"
#include "tests/device_agent/loop/fake_spool_storage.h"
#include "tests/faults/jumping_clock.h"
#include "tests/faults/link.h"
#include "tests/tracker/core_fixture.h"
#include "tracker/tracker_core.h"

namespace regatta::faults {

// One run of a trial on a board.
struct TrialRun {
  std::string trial_id;
  std::string assignment_id;
  int attempt = 0;
  int64_t lease_epoch = 0;
  SteadyTime start;
  std::optional<SteadyTime> end;  // none: runs, or was cut off
};

// A board with one device; the agent and the device have the board's id.
struct Board {
  std::string id;
  int credit = 1;
  LinkFaults link;

  // --- what happened, for the test to look at
  std::vector<TrialRun> runs;
  std::vector<v1::Assignment> started;    // assignments that the agent took
  std::vector<std::string> agent_closed;  // why the agent gave up connections
  std::vector<absl::Status> refused;      // how the tracker ended connections
  std::vector<v1::TrialAck> acks;
  int connects = 0;

  // --- the agent's process; null: it does not run
  std::unique_ptr<Spool> spool;
  std::unique_ptr<AgentLoop> loop;
  FakeDisk disk;
  bool paused = false;
  absl::Duration
      late;  // its processors are busy: all that it does comes so late
  int instance = 0;
  int boot = 1;
  std::vector<std::unique_ptr<Connection>> connections;
  Connection* current = nullptr;
  std::vector<v1::AgentMessage> past_up;
  std::vector<v1::TrackerMessage> past_down;
  int64_t highest_epoch = 0;
  int64_t work_ticks = 0;

  // --- the runner
  struct Held {
    v1::Assignment assignment;
    int next = 0;  // trial to run next
    bool finishing = false;
    SteadyTime given;
  };
  std::vector<Held> held;
  std::optional<size_t> running;  // in runs
  SteadyTime run_ends;

  bool Holds(const std::string& assignment_id) const;
  std::vector<std::string> RanTrials() const;
};

// A server with a tuning log. What it stored outlives it.
struct Server {
  std::map<std::string, v1::Work> works;       // by work id, all ever submitted
  std::map<std::string, v1::TrialResult> log;  // by trial id
  int duplicates = 0;  // results of trials that were stored before
  bool disk_full = false;
  // Commits, but dies before its acks get away: DetachServer follows.
  bool keeps_acks = false;
  std::optional<StreamId> stream;
  std::vector<v1::TrialResult> waiting;  // not committed yet
  // With a full disk it keeps so many; for the rest it attaches anew later.
  size_t most_waiting = 10'000;
  bool let_go = false;
};

class Lab {
 public:
  explicit Lab(const TrackerOptions& options = Approving(), uint64_t seed = 1);
  ~Lab();

  // --- what there is
  // References stay valid.
  Board& AddBoard(const std::string& id, int credit = 1);
  // Of job 1: units of work of so many trials each, numbered on.
  void Submit(int works, int trials_each = 1);
  Server& server() { return server_; }
  JumpingClock& clock() { return clock_; }
  TrackerCore& core() { return *core_; }
  MemoryFleetStore& store() { return store_; }
  absl::Duration trial_time = absl::Seconds(1);
  // What a run comes to; ok unless set.
  std::function<v1::Outcome(const Board&, const v1::TrialSpec&)> outcome;

  // --- time
  void Run(absl::Duration d);
  // False: not within the limit.
  bool RunUntil(const std::function<bool()>& condition, absl::Duration limit);
  // How far `then` is back.
  absl::Duration Since(SteadyTime then) { return clock_.Steady() - then; }

  // --- what breaks
  // SIGKILL: what it held in memory and its workers are gone.
  void KillAgent(Board& board);
  void StartAgent(Board& board);
  // SIGSTOP of the agent alone: what its workers run goes on.
  void PauseAgent(Board& board) { board.paused = true; }
  void ResumeAgent(Board& board) { board.paused = false; }
  // The whole board sleeps; its clock counts the time.
  void Suspend(Board& board, absl::Duration d);
  void KillTracker();
  void StartTracker();
  void PauseTracker() { tracker_paused_ = true; }
  void ResumeTracker() { tracker_paused_ = false; }
  // The server's stream breaks; what it has not stored is lost to it.
  void DetachServer();
  void AttachServer();

  // --- what came of it
  v1::DeviceStatus Status(const std::string& board) const;
  // Everything submitted is stored, acknowledged and forgotten by the boards.
  bool Drained() const;
  // Ends every fault, then waits until all is drained; false, and a violation,
  // where that takes longer than `limit`.
  bool HealAndDrain(absl::Duration limit);
  const std::vector<std::string>& Violations() const { return violations_; }

  // Boards need nobody's approval.
  static TrackerOptions Approving();

 private:
  void Step();
  void Violate(const std::string& what);

  // --- tracker and links (lab.cc)
  bool TrackerRuns() const { return core_ != nullptr && !tracker_paused_; }
  void Flush();
  void Deliver(const Action& action);
  void WatchAssign(const Board& to, const v1::Assignment& assignment);
  void PumpUp(Board& board);
  void PumpDown(Board& board);

  // --- boards (lab_board.cc)
  void TickBoard(Board& board);
  void Settle(Board& board);
  void Perform(Board& board, AgentAction& action);
  void Hear(Board& board, const v1::TrackerMessage& message);
  void FinishRun(Board& board);
  void StartRun(Board& board);
  void CutRun(Board& board, const std::string& assignment_id);
  v1::TrialResult ResultOf(const Board& board, const TrialRun& run,
                           const v1::TrialSpec& spec) const;

  // --- server (lab_server.cc)
  void ServerHears(const v1::DispatchEvent& event);
  void Commit();
  void Ask(v1::DispatchRequest request);

  const TrackerOptions options_;
  JumpingClock clock_;
  Random random_;
  Random tracker_random_;
  MemoryFleetStore store_;
  std::unique_ptr<TrackerCore> core_;  // null while it is down
  bool tracker_paused_ = false;
  SteadyTime tracker_started_;
  SteadyTime next_tick_;
  uint64_t last_id_ = 0;
  int next_work_ = 0;
  std::vector<std::unique_ptr<Board>> boards_;
  Server server_;
  std::vector<v1::DispatchRequest> server_outbox_;
  std::vector<std::string> violations_;
};

// The device class, target and compiler of all boards.
inline constexpr char kLabClass[] = "zen4-2c";
inline constexpr char kLabTarget[] = "cpu,mcpu=znver4";
inline constexpr char kLabCompiler[] = "c1";

}  // namespace regatta::faults

#endif  // REGATTA_TESTS_FAULTS_LAB_H_
