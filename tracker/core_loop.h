// The thread that owns a TrackerCore: inputs queue up here, actions go out to
// the streams from here.
#ifndef REGATTA_TRACKER_CORE_LOOP_H_
#define REGATTA_TRACKER_CORE_LOOP_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "tracker/actions.h"
#include "tracker/fleet_store.h"
#include "tracker/tracker_core.h"
#include "tracker/tracker_options.h"

namespace regatta {

class CoreLoop {
 public:
  // Called on the loop's thread, in order.
  using Deliver = std::function<void(Action)>;

  // The references outlive the loop; `random` is used by it alone.
  CoreLoop(const TrackerOptions& options, const Clock& clock, Random& random,
           FleetStore& store, Deliver deliver);
  // Runs what was posted before, then ends the thread.
  ~CoreLoop();

  // Runs `input` on the loop's thread, after everything posted before it, then
  // delivers its actions, with those of others that waited beside it. Never
  // blocks. From any thread.
  void Post(std::function<void(TrackerCore&)> input);

 private:
  void Run();
  void DeliverAll();

  TrackerCore core_;
  const absl::Duration tick_;
  const Deliver deliver_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void(TrackerCore&)>> inputs_;
  bool ending_ = false;
  std::thread thread_;  // last: starts when the rest is ready
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_CORE_LOOP_H_
