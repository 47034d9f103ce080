// Thousands of boards in one process: every board has a connection of its own
// to a real tracker, through the client that agents use; one thread drives them
// all.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_TESTS_FLEET_SIM_SIM_WORLD_H_
#define REGATTA_TESTS_FLEET_SIM_SIM_WORLD_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "device_agent/tracker_client.h"
#include "tests/fleet_sim/ledger.h"
#include "tests/fleet_sim/measures.h"
#include "tests/fleet_sim/sim_board.h"

namespace regatta::fleet_sim {

struct WorldOptions {
  uint64_t seed = 1;
  BoardHabits habits;
  absl::Duration boot_over;      // boards start spread over this
  absl::Duration latency;        // added to every message, each way; mean
  double restarts_per_hour = 0;  // of each board's agent
  double cuts_per_hour = 0;      // of each board's connection
};

// Of all boards together, so far.
struct WorldCounts {
  int64_t welcomed = 0;    // now
  int64_t arrived = 0;     // welcomed at least once since the last Mark
  int64_t spooled = 0;     // results that wait for an acknowledgement now
  int64_t held = 0;        // assignments now
  int64_t heartbeats = 0;  // answered
  int64_t assigned = 0, finished = 0, acknowledged = 0;
  int64_t repeated_acks = 0, rejected = 0;
  int64_t connects = 0, restarts = 0, cuts = 0;
};

class SimWorld {
 public:
  // A client for board `index`, called on the world's thread.
  using MakeClient =
      std::function<std::unique_ptr<TrackerConnection>(size_t index)>;

  SimWorld(const WorldOptions& options, std::vector<v1::Hello> boards,
           MakeClient make_client);
  ~SimWorld();  // as Stop

  void Start();
  // No more restarts or cuts of single boards.
  void Calm();
  // Ends the thread and every connection.
  void Stop();

  WorldCounts Counts() const;
  // Counts arrivals afresh from now on.
  void Mark();
  // Answers to heartbeats and acknowledgements of results (from the first
  // sending on) since the last call.
  struct Times {
    Histogram heartbeats, acks;
  };
  Times TakeTimes();
  // REQUIRES: stopped.
  const Ledger& ledger() const { return ledger_; }

 private:
  class Slot;
  using Event = std::function<void()>;
  struct Timer {
    int64_t at = 0;
    int64_t order = 0;
    Event event;
    bool operator>(const Timer& other) const {
      return std::tie(at, order) > std::tie(other.at, other.order);
    }
  };

  void Post(Event event);  // from any thread
  // On the world's thread.
  void At(SteadyTime at, Event event);
  absl::Duration Delay();  // of one message
  void Run();
  void RunDue(SteadyTime now);
  void NextFault(bool cut);
  void Publish();

  const WorldOptions options_;
  const Clock& clock_;
  const std::vector<v1::Hello> hellos_;
  const MakeClient make_client_;
  Random random_;
  Ledger ledger_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  int64_t timer_order_ = 0;
  WorldCounts now_;
  int64_t now_mark_ = 1;
  Times times_now_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Event> events_;
  bool stopping_ = false;
  bool calm_ = false;
  WorldCounts counts_;  // as published
  Times times_;
  bool take_times_ = false;
  int64_t mark_ = 1;
  std::thread thread_;
};

}  // namespace regatta::fleet_sim

#endif  // REGATTA_TESTS_FLEET_SIM_SIM_WORLD_H_
