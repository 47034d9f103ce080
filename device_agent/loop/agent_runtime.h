// The thread around an AgentLoop: collects what happens from every other
// thread, feeds it to the loop in order, and does what the loop asks.
//
// Thread safety: all methods may be called from any thread. The runner and the
// connection outlive the runtime.
#ifndef REGATTA_DEVICE_AGENT_LOOP_AGENT_RUNTIME_H_
#define REGATTA_DEVICE_AGENT_LOOP_AGENT_RUNTIME_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "device_agent/loop/agent_loop.h"
#include "device_agent/loop/spool.h"
#include "device_agent/loop/tracker_connection.h"
#include "device_agent/measure/trial_runner.h"

namespace regatta {

class AgentRuntime {
 public:
  AgentRuntime(AgentLoop::Options options, const Clock* clock, Random random,
               std::unique_ptr<Spool> spool, TrackerConnection* connection);
  ~AgentRuntime();  // as Stop

  // For CreateTrialRunner: where results go, and whether an assignment may
  // start another trial. Usable before Start.
  TrialRunner::ResultCallback ResultSink();
  std::function<bool(const std::string&)> StartGate();

  // Starts the thread. REQUIRES: called once.
  void Start(TrialRunner* runner);
  void SetDevices(std::vector<v1::DeviceInfo> devices);
  // See AgentLoop::OnWindow.
  void SetWindow(const std::string& device_id, absl::Duration longest);
  // Who is told of the session and of builds. Before Start; outlives it.
  void SetBuildPeer(BuildPeer* peer);
  // For build peers: an order or an answer, sent if the session is up.
  void SendBuildMessage(v1::AgentMessage message);
  // Takes nothing new; what runs ends, the rest is given back. See
  // AgentLoop::OnDrain.
  void Drain(const std::string& reason, absl::Duration returns_within);
  // After Drain: there is nothing left to wait for.
  bool Drained() const { return drained_; }
  // As they were when the loop last ran.
  struct Vitals {
    int64_t spooled = 0;    // results that are not acknowledged
    double spool_used = 0;  // share of the spool's limits
    int64_t held = 0;       // assignments
  };
  Vitals vitals() const;
  // Gives everything held back, stops the runner's work, closes the connection
  // and ends the thread. A second call does nothing.
  void Stop();

 private:
  // Something that happened; runs on the loop's thread.
  using Event = std::function<void(AgentLoop&)>;

  void Post(Event event);
  void Run();
  void Perform(AgentAction& action);
  void Open();

  const Clock* const clock_;
  const std::unique_ptr<Spool> spool_;
  TrackerConnection* const connection_;
  TrialRunner* runner_ = nullptr;
  BuildPeer* peer_ = nullptr;
  AgentLoop loop_;  // touched by the thread only, but for its gate

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Event> events_;
  bool stopping_ = false;
  Vitals vitals_;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> drained_ = false;
  // Tells events of the present connection from late ones of earlier ones.
  int64_t connection_number_ = 0;
  std::thread thread_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_AGENT_RUNTIME_H_
