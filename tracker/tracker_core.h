// The tracker without its network: a state machine that owns devices, leases
// and the queue.
//
// Inputs are the public methods below, outputs the actions that TakeActions
// returns, in order. There is no thread, socket or real time in it, so that
// thousands of seeds of faults can be simulated. Everything that can be
// dispatched is dispatched within the call that made it possible; Tick is for
// deadlines and reports only.
//
// Facts that hold after every call:
//  - a device never has more assignments outstanding than its credit;
//  - every unit of work that was submitted and neither committed nor dropped is
//    either queued, leased to one agent, cancelled and waiting for its agent's
//    last word, or waiting for the server's commit;
//  - a result is acknowledged to an agent only after the server acknowledged
//    it, or when no server can ever want it;
//  - a message that fails its checks ends the stream that it came on and
//    changes nothing else.
//
// Thread safety: one thread at a time.
#ifndef REGATTA_TRACKER_TRACKER_CORE_H_
#define REGATTA_TRACKER_TRACKER_CORE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics/metrics_page.h"
#include "base/random.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "regatta/v1/fleet_service.pb.h"
#include "tracker/actions.h"
#include "tracker/canary_book.h"
#include "tracker/deadline_queue.h"
#include "tracker/device_registry.h"
#include "tracker/dispatch_queue.h"
#include "tracker/fault_stats.h"
#include "tracker/fleet_store.h"
#include "tracker/indexed_map.h"
#include "tracker/lease_table.h"
#include "tracker/module_relay.h"
#include "tracker/power_book.h"
#include "tracker/result_buffer.h"
#include "tracker/session_caller.h"
#include "tracker/standing_book.h"
#include "tracker/tracker_counts.h"
#include "tracker/tracker_options.h"
#include "tracker/wait_reason.h"
#include "tracker/work_item.h"

namespace regatta {

class TrackerCore {
 public:
  // REQUIRES: Validate(options).ok(); clock, random and store outlive the core.
  TrackerCore(const TrackerOptions& options, const Clock& clock, Random& random,
              FleetStore& store);

  // An agent's stream.
  void SessionOpened(SessionId session, const SessionCaller& caller = {});
  void AgentSaid(SessionId session, const v1::AgentMessage& message);
  void SessionClosed(SessionId session);

  // A server's stream.
  void ServerOpened(StreamId stream);
  void ServerSaid(StreamId stream, const v1::DispatchRequest& request);
  void ServerClosed(StreamId stream);

  // To be called every options.tick.
  void Tick();
  // The process is about to end: says goodbye to agents and closes every
  // stream.
  void Goodbye(absl::Duration reconnect_after);

  v1::ListDevicesResponse ListDevices() const;
  void Collect(MetricsPage& page) const;
  // An operator's command, carried out on all devices or on none;
  // dispatch_service.proto says what errors mean.
  absl::StatusOr<v1::ControlDevicesResponse> ControlDevices(
      const v1::ControlDevicesRequest& request);
  absl::StatusOr<v1::DeviceHistoryResponse> DeviceHistory(
      const v1::DeviceHistoryRequest& request) const;

  // A command of SwitchPower has ended.
  void PowerDone(const std::string& device_id, const absl::Status& status);

  // All agents whose newest certificate is revoked, and why.
  void CertificatesRevoked(const std::map<std::string, std::string>& agents);

  // Inputs between these are taken in together: what they make possible is
  // dispatched at the end, so that many share one write to the store.
  void BeginGroup();
  void EndGroup();

  std::deque<Action> TakeActions();

  // For simulations: CHECKs everything that is kept so as not to look at all
  // agents, devices and leases at every step, by looking at all of them.
  void CheckIndices() const;

 private:
  struct Server {
    std::optional<StreamId> stream;
    SteadyTime since;  // attached or detached
    int64_t work_count = 0;
    std::string last_wait_report;  // serialized
    int64_t fleet_changes = 0;     // sent on this stream
    // Away for options.server_away: its results stay in the agents' spools.
    bool given_up = false;
  };
  // A session that has not said Hello.
  struct Unnamed {
    SteadyTime since;
    bool local = false;
  };
  // Work that was taken from a device.
  struct Revoked {
    std::string device_id;
    std::string agent_id;
    SteadyTime at;
    bool confirmed = false;  // the agent has stopped it
  };
  struct CanaryRun {
    std::string device_id;
    SteadyTime deadline;
    CanaryJudgement worst;  // of the results so far
  };
  // What a board held when it went; whether that was its end shows when it is
  // back.
  struct LostRun {
    std::string assignment_id;
    std::vector<int> suspects;  // trials of the work
  };
  // As history spells it; read back after a restart.
  static constexpr char kQuarantinedEvent[] = "quarantined";
  static constexpr char kRebootedEvent[] = "rebooted";
  static constexpr char kBrokenEvent[] = "broken";
  static constexpr char kRevokedEvent[] = "certificate revoked";

  // --- agents (tracker_agents.cc; their devices: tracker_devices.cc)
  void OnHello(SessionId session, const v1::Hello& hello);
  // What stands in the way of serving these devices for the agent.
  absl::Status CheckOwnership(SessionId session, std::string_view agent_id,
                              const v1::Hello& hello);
  using DeviceList = google::protobuf::RepeatedPtrField<v1::DeviceInfo>;
  void TakeDevices(Agent& agent, const DeviceList& devices);
  // `board_failed`: what it does not hold any more was lost with its board.
  void Reconcile(Agent& agent, const v1::Hello& hello, bool board_failed,
                 v1::Welcome* welcome);
  v1::Verdict Judge(Agent& agent, const v1::HeldAssignment& held);
  void Adopt(Agent& agent, const v1::HeldAssignment& held, WorkItem* work);
  void OnHeartbeat(Agent& agent, const v1::Heartbeat& heartbeat);
  void OnReply(Agent& agent, const v1::AssignmentReply& reply);
  void OnResults(Agent& agent, const v1::ResultBatch& batch);
  void OnResult(
      Agent& agent, const v1::SpooledResult& spooled,
      std::map<std::string, std::vector<const v1::TrialResult*>>* fresh,
      v1::ResultAck* rejected);
  // What the result means for its lease (null: it has none) and its work.
  // `full`: it was left to the spool; `given_up`: its server was.
  void EndByResult(Agent& agent, const v1::SpooledResult& spooled,
                   const Lease* lease, WorkItem* work, bool full,
                   bool given_up);
  // Whether the server was away for so long that nothing is kept for it.
  bool GivenUp(const std::string& server_id);
  void OnRelease(Agent& agent, const v1::Release& release);
  void OnDeviceUpdate(Agent& agent, const v1::DeviceUpdate& update);
  void OnLeaving(Agent& agent, const v1::Leaving& leaving);
  void PutDevice(Agent& agent, const v1::DeviceInfo& info);
  void DropDevice(const std::string& device_id);
  void LoseAgent(Agent& agent);
  // Whether a server may yet ask for what this assignment runs.
  bool MayBeWanted(std::string_view assignment_id) const;

  // --- what people decide about devices (tracker_control.cc)
  // A device that shows up gets a standing; another agent's is a new one.
  void Admit(const Agent& agent, const v1::DeviceInfo& info);
  bool AutoApproved(const Agent& agent, const v1::DeviceInfo& info) const;
  absl::StatusOr<std::vector<std::string>> Select(
      const v1::DeviceSelector& selector) const;
  std::string ClassOf(const std::string& device_id) const;
  // Makes the tracker act on a standing that was changed.
  void FollowStanding(const std::string& device_id);
  // Takes everything from the device, without an attempt; what comes of it
  // later is refused.
  void ClearDevice(const std::string& device_id);
  bool HoldsWork(const std::string& device_id) const;
  // The agent says that it holds no more what it had under this epoch.
  void ConfirmStop(const Agent& agent, int64_t lease_epoch);
  // Of a device that is gone: what a person decided is kept for its return.
  void ForgetStanding(const std::string& device_id);
  // The agent is forgotten: its devices are, and those that it once had.
  void ForgetDevicesOf(const std::string& agent_id);
  void AdvanceHolds(SteadyTime now);

  // --- canaries (tracker_canaries.cc)
  bool HasCanary(const Device& device) const;
  bool WantsCanary(const Agent& agent, const Device& device, int load,
                   SteadyTime now) const;
  void OfferCanaries(const v1::Canaries& canaries);
  void StartCanaries();
  void OnCanaryResult(Agent& agent, const v1::SpooledResult& spooled);
  void EndCanary(const std::string& device_id,
                 const CanaryJudgement& judgement);
  void CanaryPassed(const std::string& device_id);
  void CanaryVoid(const std::string& device_id, const std::string& why);
  // Slow on a busy machine: again when it may be quiet; trust stays as it is.
  void CanaryDisturbed(const std::string& device_id,
                       const CanaryJudgement& judgement);
  // Its agent did not take the round: full, draining, or never able to.
  void CanaryRefused(Device& device);
  void CanaryFailed(const std::string& device_id,
                    const CanaryJudgement& judgement);
  // Whether another board of the class passed a canary of late.
  bool HasProvenPeer(const Device& device) const;
  void AdvanceCanaries(SteadyTime now);
  // The board owes a canary before the next work of jobs.
  void Unprove(const std::string& device_id, const std::string& reason);
  // As Unprove; a quarantined board comes on probation.
  void AfterReset(const std::string& device_id, const std::string& reason);

  // --- whose fault it is (tracker_faults.cc)
  // Trials that may have been running.
  static std::vector<int> Suspects(const WorkItem& work);
  // The board failed while one of the trials ran; one that two boards failed
  // with ends as crashed.
  void Blame(WorkItem& work, const std::vector<int>& suspects,
             const std::string& device_id, const std::string& why);
  void RememberLoss(const WorkItem& work, const std::string& device_id);
  void OnReboot(Agent& agent, bool announced, bool mid_run);
  // A trial ended on the device, or the device failed during it.
  void NoteTrial(const std::string& device_id, bool fault,
                 const std::string& why);
  // `last_failure`: of a trial, that gave the occasion; "": another one.
  void JudgeBoard(const std::string& device_id,
                  const std::string& last_failure = "");
  // Whether a device failure is kept from the server, since another board is
  // to try. `news`: it was not said before.
  bool RetriedElsewhere(WorkItem& work, const Lease& lease,
                        const v1::TrialResult& result, bool* news);
  void Quarantine(const std::string& device_id, const std::string& why);
  void LiftBrake(const std::string& device_class, const std::string& why);
  // Who serves devices of the class, present or not.
  std::set<std::string> AgentsOfClass(const std::string& device_class) const;
  void ReindexClass(const std::string& device_class);
  void RecallQuarantines();

  // --- power (tracker_power.cc)
  absl::Status CheckPower(v1::DeviceCommand command,
                          const std::vector<std::string>& ids) const;
  void StartPower(v1::DeviceCommand command, const std::string& device_id);
  void AdvancePower(SteadyTime now);
  // Its board's power is about to go.
  bool IsSwitched(const Device& device) const;
  // The board is back after a reboot; true: its power was switched.
  bool PowerProven(const std::string& device_id);
  // Whether the power of any of its devices is being switched.
  bool AnySwitched(const Agent& agent) const;
  // The agent is here: its boards that were switched on have power.
  void ProvePower(Agent& agent);
  // Switches of power that history tells the beginning of, and no end.
  struct PowerOrder {
    PowerVerb verb;
    std::string what;    // as history spells it
    absl::Duration age;  // since it was given
  };
  // By device. Recalls how often each was cycled, too.
  std::map<std::string, PowerOrder> OpenOrders();
  void RecallPower();

  // --- builders (tracker_builders.cc)
  // Whether this message of an agent is one that the relay passes on.
  bool OnRelayed(SessionId session, const v1::AgentMessage& message);
  // Sends what the relay has to say, and looks again at boards that wait for
  // builders when those changed.
  void FlushRelay();
  // Who builds for the device now; "": nobody, or it needs none.
  std::string BuilderOf(const Agent& agent, const Device& device) const;
  static BuildNeeds NeedsOf(const Device& device);
  // Its modules come from a builder, and none that fits is here.
  bool WaitsForBuilder(const Agent& agent, const Device& device) const;
  // For people: why boards wait for a builder, and those of which nothing else
  // is known, since no builder has described their devices yet.
  void AddWaitingBoards(v1::ListDevicesResponse& response) const;

  // --- distrust (tracker_guard.cc)
  // False: the session was closed, there are too many.
  bool RoomForSession(SessionId session);
  int64_t CrowdOf(SessionId session) const;
  // Whether the session's certificate is of who says Hello, and of its devices.
  absl::Status CheckCaller(SessionId session, const v1::Hello& hello);
  absl::Status CheckOwnDevices(
      SessionId session,
      const google::protobuf::RepeatedPtrField<v1::DeviceInfo>& devices) const;
  // Whether the agent was given the assignment under this epoch.
  bool Holds(const Agent& agent, std::string_view assignment_id,
             int64_t lease_epoch, std::string_view proof) const;
  // Counts; ends the session of an agent that does it often.
  void SpokeForOthers(Agent& agent);
  // Notes the process that speaks for the agent. True: two take turns, too
  // often.
  bool TakeTurns(Agent& agent, const std::string& instance_id);
  // Quarantines what two processes serve by turns. True: with a certificate,
  // which is not let in any more; the session was closed.
  bool BarTurns(SessionId session, Agent& agent);
  // Closes the session and lets that certificate in no more for a while.
  void Bar(SessionId session, const std::string& agent_id,
           const std::string& what, const std::string& why);
  // "": it was not, or the agent is here all the same.
  std::string WhyRevoked(const Agent& agent) const;
  void NoteRefusal(SessionId session, const std::string& what,
                   const std::string& why);

  // --- servers (tracker_servers.cc)
  void OnAttach(StreamId stream, const v1::Attach& attach);
  void OnSubmit(const std::string& server_id, const v1::Submit& submit);
  // Nothing of a submission with such an error is taken.
  absl::Status CheckSubmit(const std::string& server_id,
                           const v1::Submit& submit) const;
  void OnCancelWork(const std::string& server_id, const v1::CancelWork& cancel);
  void RefuseLarge(WorkItem& work);
  // Work that an agent has begun ends when its last result comes, or with the
  // tracker's verdict after options.cancel_grace: the results may be under way.
  void CancelItem(WorkItem& work);
  void SettleCancelled(SteadyTime now);
  void OnCommitAck(const std::string& server_id, const v1::CommitAck& ack);
  void CommitTrial(const std::string& server_id, const v1::TrialAck& ack);
  void AfterAcks();
  // Sends results to the server if it is attached, in bounded messages.
  void Forward(const std::string& server_id,
               const std::vector<const v1::TrialResult*>& results);

  // --- work and leases (tracker_dispatch.cc)
  WorkItem* FindWork(std::string_view assignment_id);
  WorkItem* FindWorkOfTrial(std::string_view server_id,
                            std::string_view trial_id);
  void EraseWork(WorkItem& work);
  void Enqueue(WorkItem& work);
  // The lease is gone; the work is finished, queued again or given up.
  void Requeue(WorkItem& work);
  // Counts an attempt that the device lost.
  void RequeueLost(WorkItem& work, const std::string& device_id,
                   const std::string& why, bool device_fault);
  void GiveUp(WorkItem& work);
  // The tracker's own result for every trial that has none.
  void ReportUnfinished(WorkItem& work, v1::Outcome outcome,
                        const std::string& detail);
  void ReportTrials(WorkItem& work, const std::vector<int>& trials,
                    v1::Outcome outcome, const std::string& detail);
  void EndLease(const std::string& assignment_id);
  // The agent is told to drop it, if connected.
  void RevokeLease(const std::string& assignment_id);
  void LoseLease(const std::string& assignment_id, const std::string& why,
                 bool board_failed = false);

  bool StillHeldBack(std::string_view device_class) const;
  // The best device for the work now; nullptr: none, or a better one will come.
  Device* ChooseDevice(const WorkItem& work, const MatchKey& key);
  // 0: no objection; 1: to be avoided if possible; 2: it failed this work.
  int Objection(const WorkItem& work, const std::string& device_id) const;
  bool Available(const Agent& agent) const;
  // Why it would take no work of jobs, were it there.
  NotFree WhyNoJobs(const Device& device) const;
  // THE rule of who is given work, for dispatch and for what people are told.
  NotFree WhyNotFree(const Agent& agent, const Device& device, int load,
                     SteadyTime now) const;
  // Whether it is free, or will be when what it holds has ended.
  bool TakesMore(const Device& device) const;
  void Reindex(Agent& agent);
  void MarkAllDirty();
  void DispatchDirty();
  bool RecordHolders(const std::vector<std::string>& assignment_ids);
  // Of the lease, without trials.
  v1::Assignment MakeAssignment(const Lease& lease,
                                v1::AssignmentMode mode) const;
  void SendAssign(const std::string& assignment_id);

  // --- what time alone makes of agents (tracker_presence.cc). Each is looked
  // at when something may be due; what changes when that is calls Watch.
  void AbsorbStall(SteadyTime now);
  void LookAtDue(SteadyTime now);
  void LookAt(Agent& agent, SteadyTime now);
  // Its devices that are due for a canary owe one.
  void OweCanaries(Agent& agent, SteadyTime now);
  // The first moment after `now` at which something may be due, if nothing
  // happens before.
  std::optional<SteadyTime> NextLook(const Agent& agent, SteadyTime now) const;
  v1::Presence PresenceNow(const Agent& agent, SteadyTime now) const;
  void Watch(const Agent& agent);
  void LookSoon(const Agent& agent);  // with the next tick
  bool IsForgotten(const Agent& agent, SteadyTime now) const;
  void Forget(const Agent& agent);
  void SetPresence(Agent& agent, v1::Presence presence);
  void CheckLook(const Agent& agent, SteadyTime now) const;

  // --- what servers are told of devices (tracker_fleet.cc)
  void Touch(const Agent& agent);  // its devices
  // What FleetChange tells of it.
  v1::DeviceStatus ToldOf(const Device& device) const;
  v1::DeviceStatus StatusOf(const Device& device) const;
  void TakeTouched();
  void ReportFleet();
  void TellWholeFleet(Server& server);
  void Send(Server& server, v1::FleetChange change);

  // --- time and reports (tracker_reports.cc)
  void ExpireLeases(SteadyTime now);
  void FlushStore();
  void DropAwayServers(SteadyTime now);
  void RefreshState(Device& device, const Agent& agent);
  void ReportWaits();
  std::string WhyWaiting(const MatchKey& key) const;
  int64_t WallMs() const;
  void CollectDevices(MetricsPage& page) const;  // tracker_metrics.cc

  // Forgets the session; its agent is suspect from now on.
  void Detach(SessionId session);

  // --- output
  void Send(SessionId session, v1::TrackerMessage message);
  void Close(SessionId session, const absl::Status& status);
  void Send(StreamId stream, v1::DispatchEvent event);
  // With others that were taken in together with it.
  void SendResult(StreamId stream, const v1::TrialResult& result);
  void Close(StreamId stream, const absl::Status& status);
  // Ends every input: dispatches and reports what the input made possible.
  void Settle();

  const TrackerOptions options_;
  const Clock& clock_;
  Random& random_;
  FleetStore& store_;
  const SteadyTime started_;
  std::deque<Action> actions_;
  // Events in actions_ that take more results.
  struct OpenResults {
    size_t action = 0;
    size_t bytes = 0;
  };
  std::map<StreamId, OpenResults> open_results_;
  TrackerCounts counts_;

  // Sessions that said Hello know their agent; the others when they opened.
  IndexedMap<SessionId, std::string> sessions_;
  IndexedMap<SessionId, Unnamed> unnamed_sessions_;
  IndexedMap<SessionId, Identity> callers_;     // of those with certificates
  std::map<std::string, SteadyTime> barred_;  // agents, until when
  std::map<StreamId, std::string> streams_;   // "": not attached yet
  std::map<std::string, Server, std::less<>> servers_;

  DeviceRegistry registry_;
  StandingBook standings_;
  std::map<int64_t, Revoked> revoked_;  // by lease epoch
  // Of certificates, as CertificatesRevoked said last; none: it did not yet.
  std::optional<std::map<std::string, std::string>> revoked_agents_;
  CanaryBook canaries_;
  std::map<std::string, CanaryRun, std::less<>> canary_runs_;
  std::set<std::string> wants_canary_;
  int64_t canary_number_ = 0;
  FaultStats faults_;
  ClassBrake brake_;
  PowerBook power_;
  std::map<std::string, std::vector<LostRun>> lost_runs_;  // by device
  LeaseTable leases_;
  DispatchQueue queue_;
  ResultBuffer results_;
  ModuleRelay relay_;
  int64_t builders_seen_ = 0;  // relay_.change() when boards were looked at
  IndexedMap<std::string, WorkItem> works_;
  std::unordered_map<std::string, std::string> work_of_trial_;
  std::map<std::string, SteadyTime> cancelling_;  // until when

  DeadlineQueue looks_;                 // agents
  std::set<std::string> dirty_agents_;  // to be written to the store
  std::set<std::string> orphans_;  // leases of work that no server asked for
  std::set<MatchKey> dirty_;
  int64_t sequence_ = 0;
  int64_t idle_order_ = 0;
  bool in_group_ = false;
  bool buffer_full_ = false;   // above the high-water mark
  bool results_owed_ = false;  // by some agent that has a session, perhaps
  std::string store_error_;  // why the store could not be written; "" if it was
  SteadyTime last_tick_;
  std::set<std::string> untold_;  // devices that servers are to hear of
  SteadyTime last_fleet_change_;
  bool waits_changed_ = false;
  SteadyTime last_wait_report_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_TRACKER_CORE_H_
