// AgentLoop's dealings with assignments and results.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "device_agent/loop/admission.h"
#include "device_agent/loop/agent_loop.h"

namespace regatta {

// ---- work ----

void AgentLoop::OnAssign(const v1::Assignment& assignment) {
  const std::string& id = assignment.assignment_id();
  v1::AgentMessage message;
  v1::AssignmentReply& reply = *message.mutable_assignment_reply();
  reply.set_assignment_id(id);
  reply.set_lease_epoch(assignment.lease_epoch());
  if (const auto it = held_.find(id); it != held_.end()) {
    Held& held = it->second;
    if (assignment.lease_epoch() < held.lease_epoch) return;  // out of date
    if (!held.curtailed && !held.finishing &&
        clock_->Steady() < held.curtail_at) {
      // Sent again, the answer was lost or late: it is being run already.
      held.lease_epoch = assignment.lease_epoch();
      held.lease_proof = assignment.lease_proof();
      held.attempt = std::max(held.attempt, assignment.attempt());
      Renew(id, held, assignment.lease_ms());
      reply.set_accepted(true);
      return Send(std::move(message));
    }
    Drop(id);
  }
  const std::string why = WhyRefuse(assignment);
  reply.set_accepted(why.empty());
  reply.set_reason(why);
  Send(std::move(message));
  if (!why.empty()) {
    LOG(kWarning) << "refused assignment " << id << ": " << why;
    return;
  }
  Held& held = held_[id];
  held.device_id = assignment.device_id();
  held.attempt = assignment.attempt();
  held.lease_epoch = held.start_epoch = assignment.lease_epoch();
  held.lease_proof = assignment.lease_proof();
  KeepProof(assignment);
  SetLease(id, held, assignment.lease_ms());
  actions_.push_back(StartAction{assignment});
}

std::string AgentLoop::WhyRefuse(const v1::Assignment& assignment) const {
  if (draining_) return "draining";
  if (spool_->Fullness() >= options_.refuse_at_fullness) {
    return absl::StrCat("the result spool is ",
                        static_cast<int>(spool_->Fullness() * 100), " % full");
  }
  if (!spool_trouble_.empty()) {
    return absl::StrCat("the result spool cannot be written: ", spool_trouble_);
  }
  if (std::string why = WhyUnfit(assignment, hello_); !why.empty()) return why;
  int64_t on_device = 0;
  for (const auto& [id, held] : held_) {
    on_device += held.device_id == assignment.device_id() ? 1 : 0;
  }
  const int64_t credit = CreditOf(hello_, assignment.device_id());
  if (on_device >= credit) {
    return absl::StrCat("no credit: holds ", on_device, " of ", credit);
  }
  return "";
}

void AgentLoop::OnResult(const std::string& assignment_id,
                         v1::TrialResult result, bool last) {
  const auto it = held_.find(assignment_id);
  // A callback may have been under way when its assignment was stopped, perhaps
  // even given out again: a result counts by itself, but ends only its own.
  const bool current =
      it != held_.end() && (result.lease_epoch() == 0 ||
                            result.lease_epoch() == it->second.start_epoch);
  if (current) {
    result.set_attempt(it->second.attempt);
    result.set_lease_epoch(it->second.lease_epoch);
    it->second.started = true;
  }
  CompleteResult(hello_, options_.max_batch_bytes, result);
  v1::SpooledResult spooled;
  spooled.set_assignment_id(assignment_id);
  spooled.set_last(last && current && !it->second.curtailed);
  spooled.set_lease_proof(current
                              ? it->second.lease_proof
                              : KeptProof(assignment_id, result.lease_epoch()));
  *spooled.mutable_result() = std::move(result);
  // What the disk refuses is tried again, and reported, by Settle.
  spool_->Append(spooled).IgnoreError();
  if (last && current) {
    gate_.Close(assignment_id);
    held_.erase(it);
  }
}

void AgentLoop::KeepProof(const v1::Assignment& assignment) {
  constexpr size_t kKept = 1024;
  if (assignment.lease_proof().empty()) return;
  kept_proofs_.push_back({assignment.assignment_id(), assignment.lease_epoch(),
                          assignment.lease_proof()});
  if (kept_proofs_.size() > kKept) kept_proofs_.pop_front();
}

std::string AgentLoop::KeptProof(const std::string& assignment_id,
                                 int64_t lease_epoch) const {
  for (const KeptLease& kept : kept_proofs_) {
    if (kept.epoch == lease_epoch && kept.assignment_id == assignment_id) {
      return kept.proof;
    }
  }
  return "";
}

void AgentLoop::OnCancel(const v1::Cancel& cancel) {
  for (const std::string& id : cancel.assignment_ids()) {
    const auto it = held_.find(id);
    if (it == held_.end()) continue;
    const int64_t epoch = it->second.lease_epoch;
    Drop(id);
    SendRelease(id, epoch, "cancelled");
  }
}

void AgentLoop::Drop(std::string assignment_id) {
  gate_.Close(assignment_id);
  held_.erase(assignment_id);
  actions_.push_back(StopAction{std::move(assignment_id)});
}

void AgentLoop::SendRelease(const std::string& assignment_id,
                            int64_t lease_epoch, const std::string& reason) {
  v1::AgentMessage message;
  v1::Release& release = *message.mutable_release();
  release.set_assignment_id(assignment_id);
  release.set_lease_epoch(lease_epoch);
  release.set_reason(reason);
  Send(std::move(message));
}

// ---- results ----

void AgentLoop::ResetSending() {
  next_to_send_ = 0;
  in_flight_.clear();
  in_flight_bytes_ = 0;
  last_result_progress_ = clock_->Steady();
}

void AgentLoop::SendResults() {
  while (in_flight_bytes_ < options_.max_batch_bytes) {
    v1::AgentMessage message;
    v1::ResultBatch& batch = *message.mutable_result_batch();
    while (batch.results_size() < options_.max_batch_results) {
      std::optional<Spool::Entry> entry = spool_->Next(next_to_send_);
      if (!entry.has_value()) break;
      if (in_flight_bytes_ > 0 &&
          in_flight_bytes_ + entry->bytes > options_.max_batch_bytes) {
        break;
      }
      if (in_flight_.empty()) last_result_progress_ = clock_->Steady();
      next_to_send_ = entry->sequence + 1;
      in_flight_[entry->sequence] = entry->bytes;
      in_flight_bytes_ += entry->bytes;
      *batch.add_results() = std::move(entry->result);
    }
    if (batch.results_size() == 0) return;
    batch.set_batch(++batch_);
    Send(std::move(message));
  }
}

void AgentLoop::SendLateReleases() {
  if (state_ != State::kWelcomed) return;
  std::erase_if(late_releases_, [this](const LateRelease& late) {
    if (spool_->HoldsAny(next_to_send_, late.after)) return false;
    SendRelease(late.assignment_id, late.lease_epoch, late.reason);
    return true;
  });
}

void AgentLoop::OnResultAck(const v1::ResultAck& ack) {
  for (const v1::TrialAck& one : ack.acks()) {
    if (one.status() == v1::ACK_STATUS_UNSPECIFIED) continue;
    if (one.status() == v1::ACK_STATUS_REJECTED) {
      LOG(kWarning) << "the result of trial " << one.trial_id()
                    << " was rejected: " << one.reason();
    }
    spool_->Forget(one.trial_id(), one.attempt());
  }
  std::erase_if(in_flight_, [this](const auto& item) {
    if (spool_->Holds(item.first)) return false;
    in_flight_bytes_ -= item.second;
    return true;
  });
  last_result_progress_ = clock_->Steady();
}

void AgentLoop::NoteSpool(const absl::Status& status) {
  const std::string before =
      std::exchange(spool_trouble_, std::string(status.message()));
  if (spool_trouble_ == before) return;
  if (status.ok()) {
    LOG(kInfo) << "result spool: written again";
  } else if (before.empty()) {
    LOG(kError) << "result spool: " << status.message()
                << "; results stay in memory, new work is refused";
  }
  SendDevices();
}

void AgentLoop::SettleSpool() {
  if (state_ == State::kStopped || spool_trouble_.empty()) {
    if (const absl::Status status = spool_->Sync(); !status.ok()) {
      NoteSpool(status);
      probe_spool_at_ = clock_->Steady() + options_.probe_spool_every;
    }
    return;
  }
  // A result that waits is tried at once. Without one, only a probe can tell
  // whether there is room: nothing new comes while work is refused.
  if (spool_->durable() && clock_->Steady() < probe_spool_at_) return;
  probe_spool_at_ = clock_->Steady() + options_.probe_spool_every;
  absl::Status status = spool_->Sync();
  if (status.ok()) status = spool_->Probe();
  NoteSpool(status);
}

std::vector<AgentAction> AgentLoop::Settle() {
  SettleSpool();
  if (state_ == State::kWelcomed && !Quiet(clock_->Steady())) SendResults();
  SendLateReleases();
  return std::exchange(actions_, {});
}

}  // namespace regatta
