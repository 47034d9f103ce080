// What this agent did since it started, for its page of metrics.
//
// Thread-safe.
#ifndef REGATTA_DEVICE_AGENT_LOOP_AGENT_STATS_H_
#define REGATTA_DEVICE_AGENT_LOOP_AGENT_STATS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/metrics/histogram.h"
#include "base/metrics/metrics_page.h"
#include "device_agent/loop/tracker_connection.h"
#include "device_agent/measure/trial_runner.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

class AgentStats {
 public:
  // `clock` outlives it.
  explicit AgentStats(const Clock* clock) : clock_(clock) {}

  // A sink that counts results and hands them on to `next`.
  TrialRunner::ResultCallback Count(TrialRunner::ResultCallback next);
  // A device that trials will be of; it counts as idle from now on.
  void AddDevice(const std::string& id);
  // The conversation with the tracker.
  void Opened();
  void Sent(const v1::AgentMessage& message);
  void Received(const v1::TrackerMessage& message);
  void Closed();

  void Collect(MetricsPage& page) const;

 private:
  struct Device {
    absl::Duration held;  // by trials: verifying and timing
    SteadyTime last_result;
  };

  void CountResult(const v1::TrialResult& result);

  const Clock* const clock_;
  DurationHistogram heartbeat_{LatencyBounds()};
  DurationHistogram build_{WorkBounds()};
  DurationHistogram wait_{WorkBounds()};
  mutable std::mutex mutex_;
  std::map<v1::Outcome, int64_t> outcomes_;
  std::map<std::string, Device> devices_;     // by id
  std::map<int64_t, SteadyTime> heartbeats_;  // not answered yet, by sequence
  int64_t connections_ = 0;
  bool welcomed_ = false;
  int64_t assigned_ = 0;
  int64_t refused_ = 0;   // assignments that this agent did not accept
  int64_t released_ = 0;  // given back unrun
  std::map<v1::AckStatus, int64_t> acks_;
};

// A connection that tells `stats` of all that passes and is otherwise `inner`,
// which outlives it, as `stats` does.
class MeteredConnection : public TrackerConnection {
 public:
  MeteredConnection(TrackerConnection* inner, AgentStats* stats)
      : inner_(inner), stats_(stats) {}
  void Open(Callbacks callbacks) override;
  void Send(v1::AgentMessage message) override;
  void Close(absl::Duration linger) override;

 private:
  TrackerConnection* const inner_;
  AgentStats* const stats_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_AGENT_STATS_H_
