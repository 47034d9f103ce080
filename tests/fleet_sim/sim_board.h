// One board of a simulated fleet: the agent's real loop and spool on a disk in
// memory, and a runner that lets time pass instead of running anything.
//
// What comes of a schedule follows from its text: its time, whether it fails
// and how, so that boards of a class agree; blocks scatter by 1 %.
//
// A state machine: time and network are handed in. Not thread-safe.
#ifndef REGATTA_TESTS_FLEET_SIM_SIM_BOARD_H_
#define REGATTA_TESTS_FLEET_SIM_SIM_BOARD_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/random.h"
#include "device_agent/loop/agent_loop.h"
#include "tests/device_agent/loop/fake_spool_storage.h"
#include "tests/fleet_sim/ledger.h"

namespace regatta::fleet_sim {

struct BoardHabits {
  absl::Duration trial = absl::Seconds(5);  // mean; from half to one and a half
  double failures = 0.05;                   // share of schedules that fail
};

// The board's network.
class BoardLink {
 public:
  virtual ~BoardLink() = default;
  // Answered by OnConnected, and by OnDisconnected when it ends by itself.
  virtual void Open() = 0;
  virtual void Send(v1::AgentMessage message) = 0;
  virtual void Close() = 0;
};

class SimBoard {
 public:
  // `hello` says who it is; `clock`, `link` and `ledger` outlive it.
  SimBoard(v1::Hello hello, const BoardHabits& habits, uint64_t seed,
           const Clock* clock, BoardLink* link, Ledger* ledger);

  // Starts the agent's process. False: the disk does not let it.
  bool Boot();
  // Ends it at once: what was running is lost, what the spool holds is not.
  void Kill();

  // Ignored while no process runs.
  void OnConnected();
  void OnDisconnected(const absl::Status& why);
  void OnMessage(const v1::TrackerMessage& message);
  void OnWake();
  // When OnWake has something to do next.
  SteadyTime NextWake() const;

  // Outlives its processes. Yours to break.
  FakeDisk& disk() { return disk_; }
  const std::string& device_class() const {
    return hello_.devices(0).device_class();
  }
  bool up() const { return loop_ != nullptr; }
  bool welcomed() const { return up() && loop_->welcomed(); }
  int64_t spooled() const { return up() ? spool_->count() : 0; }
  int64_t held() const { return up() ? loop_->held() : 0; }

 private:
  struct Running {
    v1::Assignment assignment;
    int next = 0;  // trial that is to start, or runs
  };

  void StartTrial();
  void FinishTrial();
  void Report(const Running& running, int trial);
  v1::TrialResult ResultOf(const v1::TrialSpec& spec,
                           const v1::Assignment& assignment);
  void Settle();

  const v1::Hello hello_;
  const BoardHabits habits_;
  const Clock* const clock_;
  BoardLink* const link_;
  Ledger* const ledger_;
  Random random_;
  FakeDisk disk_;
  int64_t starts_ = 0;

  std::unique_ptr<Spool> spool_;
  std::unique_ptr<AgentLoop> loop_;
  std::deque<Running> running_;  // the front's trial may run
  bool in_trial_ = false;
  SteadyTime trial_began_, trial_ends_;
  int64_t work_ticks_ = 0;
  std::vector<v1::TrialResult> unsettled_;  // appended, not surely durable
};

}  // namespace regatta::fleet_sim

#endif  // REGATTA_TESTS_FLEET_SIM_SIM_BOARD_H_
