// The agent's side of the fleet protocol as a state machine: what to send, what
// to run, when to connect. It owns no thread, socket or process. Inputs go in
// through the On... methods; Settle hands out what to do about them.
//
// Rules, beyond those of fleet_service.proto:
// - A result is durable in the spool before it is sent, and leaves the spool
//   only when acknowledged, whatever became of its assignment.
// - Past 80 % of its lease an assignment starts no further trial and is given
//   back, even when a renewal comes later than that; what runs may finish. At
//   the end of the lease it is stopped.
// - A Welcome of a lower tracker epoch than seen before comes from a tracker
//   that lost the leadership: its session is closed. When nothing else answers
//   for two minutes, longer than any lease, it is accepted as a tracker whose
//   state was deleted.
// - A tracker that is silent for three heartbeats is taken for gone.
// - While the spool cannot be written, work is refused and every device's
//   health says "draining: ..."; the disk is tried every few seconds until it
//   takes results again.
// - While a run is timed the agent is silent (quiet_time.h): device updates and
//   results wait for its end. A heartbeat that would fall due meanwhile is sent
//   before, saying for how long there will be none; one that falls due all the
//   same says so for the rest. Renewing leases, answers to assignments and
//   releases are never put off.
// - Reconnecting: five quick tries (0.1-0.5 s apart, so that a restarted local
//   tracker is found within a second), then full jitter growing to 30 s.
//
// Not thread-safe: one thread feeds it. The LeaseGate may be asked from any.
#ifndef REGATTA_DEVICE_AGENT_LOOP_AGENT_LOOP_H_
#define REGATTA_DEVICE_AGENT_LOOP_AGENT_LOOP_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/random.h"
#include "device_agent/loop/build_peer.h"
#include "device_agent/loop/lease_gate.h"
#include "device_agent/loop/quiet_time.h"
#include "device_agent/loop/reconnect.h"
#include "device_agent/loop/spool.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

// Opens a new connection; any earlier one was closed. Answered by OnConnected
// and, when it fails or ends, OnDisconnected.
struct ConnectAction {};
// Ends the connection after what was sent; OnDisconnected need not follow.
struct CloseAction {
  std::string reason;
};
struct SendAction {
  v1::AgentMessage message;
};
struct StartAction {
  v1::Assignment assignment;
};
struct StopAction {
  std::string assignment_id;
};
// What runs of it ends, nothing more is started. Answered by OnFinished.
struct FinishAction {
  std::string assignment_id;
};
// For whoever orders or makes modules over this session.
struct SessionAction {
  SessionState state;
};
struct BuildAction {
  v1::TrackerMessage message;
};
using AgentAction =
    std::variant<ConnectAction, CloseAction, SendAction, StartAction,
                 StopAction, FinishAction, SessionAction, BuildAction>;

class AgentLoop {
 public:
  struct Options {
    // Identity, versions and devices; `held` and `spooled_results` are the
    // loop's to fill in.
    v1::Hello hello;
    absl::Duration default_lease = absl::Seconds(60);
    // Longer than a tracker takes to let ten thousand in that come at once:
    // whoever hangs up before waits again behind all others.
    absl::Duration welcome_timeout = absl::Seconds(30);
    // Unacknowledged results are sent again after this long without any
    // acknowledgement.
    absl::Duration resend_after = absl::Seconds(30);
    // Per message, and in flight. The cap on messages is 1 MiB.
    int64_t max_batch_bytes = (1 << 20) - 8192;
    int64_t max_batch_results = 64;
    double refuse_at_fullness = 0.8;  // of the spool
    // How often a disk that refused results is tried.
    absl::Duration probe_spool_every = absl::Seconds(5);
  };

  // `clock` and `spool` outlive the loop.
  AgentLoop(Options options, const Clock* clock, Random random, Spool* spool);

  void OnConnected();
  void OnDisconnected(const absl::Status& why);
  void OnMessage(const v1::TrackerMessage& message);
  // From the runner. `last` ends the assignment.
  void OnResult(const std::string& assignment_id, v1::TrialResult result,
                bool last);
  // The devices as they are now: probing ended, or health changed.
  void OnDevices(std::vector<v1::DeviceInfo> devices);
  // A run on the device is about to be timed, for at most so long; zero: it is
  // over.
  void OnWindow(const std::string& device_id, absl::Duration longest);
  // To be sent in this session, if there is one that relays builds: an order or
  // an answer about modules. Dropped otherwise.
  void OnBuildMessage(v1::AgentMessage message);
  // Time has passed; `work_ticks` is the runner's. Call at NextWake() at the
  // latest.
  void OnTick(int64_t work_ticks);
  // Nothing of the assignment runs any more, after a FinishAction.
  void OnFinished(const std::string& assignment_id);
  // Takes nothing new for the rest of this process; the candidates that run
  // end, the rest is given back. With `returns_within` the tracker is told to
  // expect the agent back: the board reboots.
  void OnDrain(const std::string& reason, absl::Duration returns_within);
  // Whether there is nothing left to wait for after OnDrain: no work, no
  // result and no release that a connected tracker may yet take. During the
  // handshake there is: the tracker counts on what the Hello lists.
  bool drained() const {
    if (state_ == State::kGreeting) return false;
    return state_ != State::kWelcomed ||
           (held_.empty() && spool_->count() == 0 && late_releases_.empty());
  }
  // Stops and gives back everything held. Only Settle may follow.
  void OnShutdown();

  // Makes new results durable, then returns what to do, in order.
  std::vector<AgentAction> Settle();

  // When OnTick has something to do next.
  SteadyTime NextWake() const;
  LeaseGate& gate() { return gate_; }

  bool welcomed() const { return state_ == State::kWelcomed; }
  int64_t held() const { return static_cast<int64_t>(held_.size()); }

 private:
  enum class State { kWaiting, kConnecting, kGreeting, kWelcomed, kStopped };

  struct Held {
    std::string device_id;
    int32_t attempt = 0;
    std::string lease_proof;  // of lease_epoch
    int64_t lease_epoch = 0;  // as the tracker counts it now
    int64_t start_epoch = 0;  // as the runner was given it
    bool started = false;     // a result came
    bool curtailed = false;   // starts nothing more; given back
    bool finishing = false;   // starts nothing more; given back when it is idle
    SteadyTime curtail_at;
    SteadyTime expires_at;
  };

  // What showed that this agent was given an assignment, for results that come
  // after the assignment was dropped.
  struct KeptLease {
    std::string assignment_id;
    int64_t epoch = 0;
    std::string proof;
  };

  void OnWelcome(const v1::Welcome& welcome);
  bool AcceptsEpoch(int64_t epoch);
  void OnAssign(const v1::Assignment& assignment);
  // Why not, or "".
  std::string WhyRefuse(const v1::Assignment& assignment) const;
  void OnHeartbeatAck(const v1::HeartbeatAck& ack);
  void OnResultAck(const v1::ResultAck& ack);
  void OnCancel(const v1::Cancel& cancel);
  void OnDrainMessage(const v1::Drain& drain);
  void FinishHeld(const std::string& assignment_id, Held& held);
  void OnGoodbye(const v1::Goodbye& goodbye);
  void ShowSession(const SessionState& state);

  void Connect();
  // Closes and schedules the next try.
  void Disconnect(const std::string& reason);
  void SendHello();
  // Makes results durable and, where that failed before, sees whether the disk
  // takes them again.
  void SettleSpool();
  void NoteSpool(const absl::Status& status);
  // The devices as the tracker is to see them now.
  v1::DeviceUpdate ShownDevices() const;
  // Unless the tracker has been shown just these in this session.
  void SendDevices();
  void SendHeartbeat();
  void SendRelease(const std::string& assignment_id, int64_t lease_epoch,
                   const std::string& reason);
  void SendResults();
  void ReleaseLate(const std::string& assignment_id, int64_t lease_epoch,
                   const std::string& reason);
  // Those that need not wait for results any more: a tracker that learns of the
  // release first has another board run again what is about to arrive.
  void SendLateReleases();
  // Everything in the spool is to be sent (again), from the oldest on.
  void ResetSending();
  void ScheduleHeartbeat();
  // Whether what can wait has to, and when the next heartbeat is due.
  bool Quiet(SteadyTime now) const;
  SteadyTime HeartbeatDue() const;
  // The tracker was told of the silence, and said that it heard it.
  bool SilenceAgreed() const {
    return announced_ > 0 && acked_sequence_ >= announced_;
  }
  // Something is said, or no run is timed any more.
  void EndSilence(SteadyTime now);
  // When a silent tracker is given up.
  SteadyTime SilenceEnds() const;
  void Send(v1::AgentMessage message);
  void SetLease(const std::string& assignment_id, Held& held, int64_t lease_ms);
  void Renew(const std::string& assignment_id, Held& held, int64_t lease_ms);
  void Curtail(const std::string& assignment_id, Held& held);
  // Stops the runner and forgets the assignment.
  void Drop(std::string assignment_id);  // a copy: the key goes with the entry
  void KeepProof(const v1::Assignment& assignment);
  std::string KeptProof(const std::string& assignment_id,
                        int64_t lease_epoch) const;
  void CheckLeases(SteadyTime now);

  const Options options_;
  const Clock* const clock_;
  Spool* const spool_;
  Reconnect reconnect_;
  Random random_;
  LeaseGate gate_;

  v1::Hello hello_;         // the devices in it are kept up to date
  v1::DeviceUpdate shown_;  // the devices as this session was shown them last
  State state_ = State::kWaiting;
  SessionState session_;
  std::vector<AgentAction> actions_;
  std::map<std::string, Held> held_;
  std::deque<KeptLease> kept_proofs_;  // oldest first
  bool draining_ = false;
  std::string leaving_;  // why this process drains for good, or ""
  // Of work that ended without a last result.
  struct LateRelease {
    std::string assignment_id;
    int64_t lease_epoch = 0;
    std::string reason;
    Spool::Sequence after = 0;  // once the results before this one are sent
  };
  std::vector<LateRelease> late_releases_;
  std::string spool_trouble_;  // why the spool cannot be written, or ""
  SteadyTime probe_spool_at_;  // counts while there is trouble
  int64_t work_ticks_ = 0;

  SteadyTime connect_at_;
  SteadyTime last_received_;
  SteadyTime welcomed_at_;
  SteadyTime next_heartbeat_;
  absl::Duration heartbeat_ = absl::Seconds(10);
  absl::Duration lease_;
  int64_t heartbeat_sequence_ = 0;
  int64_t acked_sequence_ = 0;
  QuietTime quiet_;
  int64_t announced_ = 0;  // the heartbeat that told of this silence; 0: none,
                           // or something was said since
  bool devices_wait_ = false;  // for the end of the silence
  SteadyTime heartbeat_sent_;
  SteadyTime silence_until_;  // as announced
  SteadyTime agreed_silence_ended_;
  int64_t highest_epoch_ = 0;
  std::optional<SteadyTime> only_lower_since_;

  // The session's sending of results.
  int64_t batch_ = 0;
  Spool::Sequence next_to_send_ = 0;
  std::map<Spool::Sequence, int64_t> in_flight_;  // bytes of each
  int64_t in_flight_bytes_ = 0;
  SteadyTime last_result_progress_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_AGENT_LOOP_H_
