// TrackerCore's conversation with servers.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/log.h"
#include "tracker/message_check.h"
#include "tracker/tracker_core.h"

namespace regatta {
namespace {

std::string TrialKey(std::string_view server_id, std::string_view trial_id) {
  return absl::StrCat(std::string(server_id), "/", std::string(trial_id));
}

}  // namespace

void TrackerCore::OnAttach(StreamId stream, const v1::Attach& attach) {
  const std::string& server_id = attach.server_id();
  Server& server = servers_[server_id];
  if (server.stream) {
    Close(*server.stream,
          absl::AbortedError(absl::StrCat("a newer stream of server ",
                                          server_id, " took over")));
  }
  streams_[stream] = server_id;
  server.stream = stream;
  server.since = clock_.Steady();
  server.last_wait_report.clear();
  server.given_up = false;
  for (auto& [id, agent] : registry_.agents()) {
    if (agent.owed_servers.erase(server_id) > 0) {
      agent.owes_results = results_owed_ = true;
    }
  }
  waits_changed_ = true;
  LOG(kInfo) << "server " << server_id << " attached";

  v1::DispatchEvent event;
  v1::Attached* attached = event.mutable_attached();
  attached->set_tracker_epoch(store_.tracker_epoch());
  const std::string prefix = server_id + "/";
  for (auto it = works_.lower_bound(prefix);
       it != works_.end() && it->first.starts_with(prefix); ++it) {
    attached->add_held_work_ids(it->second.work.work_id());
  }
  Send(stream, std::move(event));
  server.fleet_changes = 0;
  TellWholeFleet(server);
  Forward(server_id, results_.OfServer(server_id));
  AfterAcks();  // agents that owe it results send them again
}

absl::Status TrackerCore::CheckSubmit(const std::string& server_id,
                                      const v1::Submit& submit) const {
  const Server& server = servers_.find(server_id)->second;
  if (server.work_count + submit.work_size() > options_.max_work_per_server) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the tracker holds ", server.work_count, " units of work of server ",
        server_id, ", at most ", options_.max_work_per_server,
        " are allowed; submit more when some are done"));
  }
  std::map<std::string, std::string> fresh;  // trial -> work
  for (const v1::Work& work : submit.work()) {
    const std::string id = AssignmentId(server_id, work.work_id());
    if (works_.contains(id)) continue;
    for (const v1::TrialSpec& trial : work.trials()) {
      auto held = work_of_trial_.find(TrialKey(server_id, trial.trial_id()));
      auto [it, added] = fresh.emplace(trial.trial_id(), id);
      if (held != work_of_trial_.end() || (!added && it->second != id)) {
        return absl::InvalidArgumentError(
            absl::StrCat("trial ", trial.trial_id(), " of work ",
                         work.work_id(), " belongs to other work already"));
      }
    }
  }
  return absl::OkStatus();
}

void TrackerCore::OnSubmit(const std::string& server_id,
                           const v1::Submit& submit) {
  for (const v1::Work& unit : submit.work()) {
    const std::string id = AssignmentId(server_id, unit.work_id());
    if (works_.contains(id)) continue;
    WorkItem& work = works_[id];
    work.server_id = server_id;
    work.assignment_id = id;
    work.sequence = ++sequence_;
    work.work = unit;
    work.trials.resize(static_cast<size_t>(unit.trials_size()));
    ++servers_[server_id].work_count;
    for (int i = 0; i < unit.trials_size(); ++i) {
      const std::string& trial_id = unit.trials(i).trial_id();
      work_of_trial_[TrialKey(server_id, trial_id)] = id;
      // An agent may have delivered before the server asked again.
      work.trials[i].reported_attempt = results_.AttemptOf(server_id, trial_id);
    }
    Lease* lease = leases_.Find(id);
    if (lease == nullptr) {
      RefuseLarge(work);
      if (work.state != WorkItem::State::kFinished) Requeue(work);
      continue;
    }
    // Brought along by an agent after this tracker's restart.
    orphans_.erase(id);
    queue_.RunsAlready(work.entry(), clock_.Steady());
    work.state = WorkItem::State::kLeased;
    work.dispatched = true;
    work.attempt = lease->attempt;
  }
}

// An agent would refuse it each time it is sent.
void TrackerCore::RefuseLarge(WorkItem& work) {
  const auto bytes = static_cast<int64_t>(work.work.ByteSizeLong());
  if (bytes <= kMaxWorkBytes) return;
  work.state = WorkItem::State::kFinished;
  ReportUnfinished(work, v1::OUTCOME_REFUSED,
                   absl::StrCat("the unit of work has ", bytes,
                                " bytes, a board takes at "
                                "most ",
                                kMaxWorkBytes));
}

void TrackerCore::OnCancelWork(const std::string& server_id,
                               const v1::CancelWork& cancel) {
  std::vector<std::string> ids;
  if (cancel.work_ids().empty()) {
    const std::string prefix = server_id + "/";
    for (auto it = works_.lower_bound(prefix);
         it != works_.end() && it->first.starts_with(prefix); ++it) {
      if (it->second.work.job_id() == cancel.job_id()) ids.push_back(it->first);
    }
  } else {
    for (const std::string& work_id : cancel.work_ids()) {
      ids.push_back(AssignmentId(server_id, work_id));
    }
  }
  for (const std::string& id : ids) {
    if (WorkItem* work = FindWork(id)) {
      CancelItem(*work);
    } else if (leases_.Find(id) != nullptr) {
      RevokeLease(id);
    }
  }
}

void TrackerCore::CancelItem(WorkItem& work) {
  if (work.state == WorkItem::State::kFinished ||
      work.state == WorkItem::State::kCancelling) {
    return;
  }
  waits_changed_ = true;
  if (work.state == WorkItem::State::kQueued)
    queue_.Remove(work.entry(), clock_.Steady());
  if (work.state == WorkItem::State::kLeased) {
    const bool begun = leases_.Find(work.assignment_id)->accepted;
    RevokeLease(work.assignment_id);
    if (begun) {
      work.state = WorkItem::State::kCancelling;
      cancelling_[work.assignment_id] = clock_.Steady() + options_.cancel_grace;
      return;
    }
  }
  work.state = WorkItem::State::kFinished;
  ReportUnfinished(work, v1::OUTCOME_CANCELLED, "cancelled");
}

void TrackerCore::SettleCancelled(SteadyTime now) {
  for (auto it = cancelling_.begin(); it != cancelling_.end();) {
    if (now < it->second) {
      ++it;
      continue;
    }
    WorkItem& work = *FindWork(it->first);
    it = cancelling_.erase(it);
    work.state = WorkItem::State::kFinished;
    ReportUnfinished(work, v1::OUTCOME_CANCELLED, "cancelled");
  }
}

void TrackerCore::OnCommitAck(const std::string& server_id,
                              const v1::CommitAck& commit) {
  std::map<SessionId, v1::TrackerMessage> messages;
  for (const v1::TrialAck& ack : commit.acks()) {
    for (const std::string& agent_id :
         results_.Acknowledge(server_id, ack.trial_id(), ack.attempt())) {
      const Agent* agent = registry_.FindAgent(agent_id);
      if (agent == nullptr || !agent->session) continue;
      *messages[*agent->session].mutable_result_ack()->add_acks() = ack;
    }
    CommitTrial(server_id, ack);
  }
  for (auto& [session, message] : messages) Send(session, std::move(message));
  AfterAcks();
}

void TrackerCore::CommitTrial(const std::string& server_id,
                              const v1::TrialAck& ack) {
  WorkItem* work = FindWorkOfTrial(server_id, ack.trial_id());
  if (work == nullptr) return;
  for (int i = 0; i < work->work.trials_size(); ++i) {
    if (work->work.trials(i).trial_id() != ack.trial_id()) continue;
    // A refusal closes the trial only when it is about its current result.
    if (ack.status() != v1::ACK_STATUS_REJECTED ||
        work->trials[i].reported_attempt == ack.attempt()) {
      work->trials[i].committed = true;
    }
  }
  if (!work->AllCommitted()) return;
  if (work->state == WorkItem::State::kQueued)
    queue_.Remove(work->entry(), clock_.Steady());
  // A late result of another agent was enough.
  if (leases_.Find(work->assignment_id)) RevokeLease(work->assignment_id);
  EraseWork(*work);
}

void TrackerCore::AfterAcks() {
  if (buffer_full_ && results_.Level() < 0.8) {
    buffer_full_ = false;
    MarkAllDirty();
  }
  if (!results_owed_ || results_.Level() >= 0.5) return;
  // One without a session sends everything again when it is back.
  results_owed_ = false;
  for (auto& [id, agent] : registry_.agents()) {
    if (!agent.owes_results || !agent.session) continue;
    agent.owes_results = false;
    Close(*agent.session,
          absl::UnavailableError("the tracker had no room for your results; "
                                 "connect again and send them again"));
  }
}

void TrackerCore::Forward(const std::string& server_id,
                          const std::vector<const v1::TrialResult*>& results) {
  auto server = servers_.find(server_id);
  if (server == servers_.end() || !server->second.stream) return;
  for (const v1::TrialResult* result : results) {
    SendResult(*server->second.stream, *result);
  }
}

WorkItem* TrackerCore::FindWorkOfTrial(std::string_view server_id,
                                       std::string_view trial_id) {
  auto it = work_of_trial_.find(TrialKey(server_id, trial_id));
  return it == work_of_trial_.end() ? nullptr : FindWork(it->second);
}

void TrackerCore::EraseWork(WorkItem& work) {
  for (const v1::TrialSpec& trial : work.work.trials()) {
    work_of_trial_.erase(TrialKey(work.server_id, trial.trial_id()));
  }
  --servers_[work.server_id].work_count;
  waits_changed_ = true;
  const std::string id = work.assignment_id;
  cancelling_.erase(id);
  works_.erase(id);
}

}  // namespace regatta
