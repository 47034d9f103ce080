// Results on their way into the tuning log.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/job/job_manager.h"
#include "storage/validate.h"

namespace regatta {
namespace {

v1::TrialAck MakeAck(const v1::TrialResult& result, v1::AckStatus status,
                     std::string reason = "") {
  v1::TrialAck ack;
  ack.set_trial_id(result.spec().trial_id());
  ack.set_attempt(result.attempt());
  ack.set_status(status);
  ack.set_reason(std::move(reason));
  return ack;
}

v1::AckStatus ToAck(AppendStatus status) {
  return status == AppendStatus::kStored ? v1::ACK_STATUS_STORED
                                         : v1::ACK_STATUS_DUPLICATE;
}

}  // namespace

absl::StatusOr<TaskRunner*> JobManager::FindTask(const v1::TrialSpec& spec) {
  auto job = jobs_.find(spec.job_id());
  if (job == jobs_.end()) {
    RETURN_IF_ERROR(LoadEnded(spec.job_id()));
    job = jobs_.find(spec.job_id());
  }
  auto& tasks = job->second.job.tasks();
  if (spec.task() < 0 || spec.task() >= static_cast<int>(tasks.size())) {
    return absl::NotFoundError(
        absl::StrCat("job ", spec.job_id(), " has no task ", spec.task()));
  }
  return &tasks[spec.task()];
}

absl::Status JobManager::CheckResult(const v1::TrialResult& result) {
  const v1::TrialSpec& spec = result.spec();
  if (spec.trial_id().empty()) {
    return absl::InvalidArgumentError("a result without a trial_id");
  }
  const auto task = FindTask(spec);
  if (!task.ok()) {
    return Annotate(task.status(), absl::StrCat("trial ", spec.trial_id()));
  }
  // It would be kept apart from this log's own evidence.
  if (absl::StartsWith(result.provenance(), kImportProvenance)) {
    return absl::InvalidArgumentError(
        absl::StrCat("trial ", spec.trial_id(), ": provenance is '",
                     result.provenance(), "', but a board sent it"));
  }
  RETURN_IF_ERROR((*task)->Check(result));
  return ValidateResult(result);
}

absl::StatusOr<std::vector<v1::TrialAck>> JobManager::Store(
    const std::vector<Arrival>& arrivals) {
  std::vector<v1::TrialAck> acks;
  std::vector<v1::TrialResult> results;
  for (const Arrival& arrival : arrivals) results.push_back(arrival.result);
  auto stored = options_.log->Append(results, UnixMs());
  if (stored.ok()) {
    for (size_t i = 0; i < results.size(); ++i) {
      acks.push_back(MakeAck(results[i], ToAck((*stored)[i])));
    }
    return acks;
  }
  if (stored.status().code() != absl::StatusCode::kInvalidArgument) {
    return stored.status();
  }
  // One of them is malformed in a way that only the log knows: find it.
  for (const v1::TrialResult& result : results) {
    auto one = options_.log->Append({&result, 1}, UnixMs());
    if (one.ok()) {
      acks.push_back(MakeAck(result, ToAck((*one)[0])));
    } else if (one.status().code() == absl::StatusCode::kInvalidArgument) {
      acks.push_back(MakeAck(result, v1::ACK_STATUS_REJECTED,
                             std::string(one.status().message())));
    } else {
      // Those stored before this one come out as duplicates the next time.
      return one.status();
    }
  }
  return acks;
}

void JobManager::NoteCommit(
    const std::vector<Arrival>& arrivals,
    const absl::StatusOr<std::vector<v1::TrialAck>>& acks,
    absl::Duration took) {
  if (arrivals.empty()) return;
  if (!acks.ok()) return commit_stats_.Failed();
  commit_stats_.Committed(took);
  for (size_t i = 0; i < arrivals.size(); ++i) {
    commit_stats_.Judged(arrivals[i].result.outcome(), (*acks)[i].status());
  }
}

void JobManager::KeepUnstored(std::vector<Arrival> arrivals) {
  std::set<std::pair<std::string, int>> kept;
  unstored_.clear();
  for (Arrival& arrival : arrivals) {
    if (!kept.insert(
                 {arrival.result.spec().trial_id(), arrival.result.attempt()})
             .second) {
      continue;
    }
    if (unstored_.size() >= options_.max_unstored) {
      let_go_ = true;
      break;
    }
    unstored_.push_back(std::move(arrival));
  }
  commit_stats_.SetUnstored(static_cast<int64_t>(unstored_.size()));
}

// The tracker sends a result once a stream, and its agents' repeats of one that
// waits for this server go no further.
void JobManager::RecoverLetGo() {
  if (!let_go_ || !unstored_.empty()) return;
  let_go_ = false;
  LOG(kInfo) << "the log is written again; attaching to the tracker anew for "
                "the results that there was no room for";
  options_.dispatcher->Reattach();
}

void JobManager::ApplyResult(const Arrival& arrival, v1::AckStatus status,
                             SteadyTime committed) {
  const v1::TrialSpec& spec = arrival.result.spec();
  const auto found = FindTask(spec);
  CHECK(found.ok()) << found.status();  // it was checked in this very step
  TaskRunner* const task = *found;
  // A duplicate was taken in when it was stored, unless that append failed in
  // the middle: then the task still waits for it.
  const bool news =
      status == v1::ACK_STATUS_STORED ||
      (status == v1::ACK_STATUS_DUPLICATE && task->IsOpen(spec.trial_id()));
  if (!news) return;
  // A task that still waits for its target reads its records then.
  if (task->active() && !task->resolved()) return;
  task->Apply(arrival.result, {arrival.at, committed});
  JobSlot& slot = jobs_.at(spec.job_id());
  slot.changed = true;
  if (!task->active()) slot.dirty = true;  // its counts are kept in the status
  last_result_[{spec.job_id(), spec.task()}] = committed;
}

void JobManager::CommitResults(std::vector<Arrival> arrivals) {
  if (!unstored_.empty()) {
    arrivals.insert(arrivals.begin(),
                    std::make_move_iterator(unstored_.begin()),
                    std::make_move_iterator(unstored_.end()));
    unstored_.clear();
  }
  if (arrivals.empty()) return;
  v1::CommitAck commit_ack;
  std::vector<Arrival> good, unchecked;
  for (Arrival& arrival : arrivals) {
    const absl::Status status = CheckResult(arrival.result);
    if (status.ok()) {
      good.push_back(std::move(arrival));
    } else if (!absl::IsInvalidArgument(status) && !absl::IsNotFound(status)) {
      NoteTrouble(status);
      unchecked.push_back(std::move(arrival));
    } else {
      LOG(kWarning) << LogEvent("result_refused")
                    << LogTrial(arrival.result.spec().trial_id())
                    << "result refused: " << status.message();
      commit_stats_.Judged(arrival.result.outcome(), v1::ACK_STATUS_REJECTED);
      *commit_ack.add_acks() = MakeAck(arrival.result, v1::ACK_STATUS_REJECTED,
                                       std::string(status.message()));
    }
  }
  absl::StatusOr<std::vector<v1::TrialAck>> acks = std::vector<v1::TrialAck>();
  const SteadyTime began = options_.clock->Steady();
  if (!good.empty()) acks = Store(good);
  const SteadyTime committed = options_.clock->Steady();
  NoteCommit(good, acks, committed - began);
  if (acks.ok()) {
    for (const v1::TrialAck& ack : *acks) *commit_ack.add_acks() = ack;
  }
  if (commit_ack.acks_size() > 0) options_.dispatcher->Acknowledge(commit_ack);
  if (!acks.ok()) {
    NoteTrouble(acks.status());
    good.insert(good.end(), std::make_move_iterator(unchecked.begin()),
                std::make_move_iterator(unchecked.end()));
    KeepUnstored(std::move(good));
    return;
  }
  KeepUnstored(std::move(unchecked));
  RecoverLetGo();
  for (size_t i = 0; i < good.size(); ++i) {
    ApplyResult(good[i], (*acks)[i].status(), committed);
    const v1::TrialResult& result = good[i].result;
    if (!result.environment().measure_protocol().empty()) {
      std::lock_guard lock(view_mutex_);
      protocols_[result.device_class()] =
          result.environment().measure_protocol();
    }
  }
}

}  // namespace regatta
