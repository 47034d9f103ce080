#include "tests/fleet_sim/ledger.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/tuning_log.h"

namespace regatta::fleet_sim {
namespace {

constexpr size_t kShown = 10;  // broken promises

// What must be the same in the board's result and in the log's record.
uint64_t Fingerprint(const v1::TrialResult& result) {
  uint64_t sum = static_cast<uint64_t>(result.time_ns()) * 1'000'003u +
                 static_cast<uint64_t>(result.outcome());
  for (const v1::Block& block : result.blocks()) {
    sum = sum * 31 + static_cast<uint64_t>(block.elapsed_ns());
  }
  for (const char c : result.device_id()) {
    sum = sum * 131 + static_cast<unsigned char>(c);
  }
  return sum;
}

}  // namespace

void Ledger::Assigned(const v1::Assignment& assignment) {
  for (const v1::TrialSpec& trial : assignment.trials()) {
    trials_.try_emplace(trial.trial_id());
  }
}

void Ledger::Finished(const v1::TrialResult& result) {
  ++finished_;
  trials_[result.spec().trial_id()].sent.push_back(Fingerprint(result));
}

void Ledger::Acknowledged(const v1::TrialAck& ack) {
  const auto found = trials_.find(ack.trial_id());
  if (found == trials_.end() || found->second.sent.empty()) {
    Broken(absl::StrCat("trial ", ack.trial_id(),
                        " was acknowledged, but no board had finished it"));
    return;
  }
  if (ack.status() == v1::ACK_STATUS_REJECTED) {
    ++rejected_;
    Broken(absl::StrCat("the result of trial ", ack.trial_id(),
                        " was rejected: ", ack.reason()));
    return;
  }
  if (std::exchange(found->second.acknowledged, true)) {
    ++repeated_acks_;
  } else {
    ++acknowledged_;
  }
}

std::vector<std::string> Ledger::FinishedTrials() const {
  std::vector<std::string> finished;
  for (const auto& [id, trial] : trials_) {
    if (!trial.sent.empty()) finished.push_back(id);
  }
  std::sort(finished.begin(), finished.end());
  return finished;
}

absl::StatusOr<Ledger::Audit> Ledger::AuditLog(
    const std::string& path, const std::vector<std::string>& keys) const {
  OpenOptions options;
  options.create = false;
  options.read_only = true;
  ASSIGN_OR_RETURN(const auto log, OpenTuningLog(path, options));
  Audit audit;
  const auto broken = [&](std::string what) {
    ++audit.broken_count;
    if (audit.broken.size() < kShown) audit.broken.push_back(std::move(what));
  };
  for (const std::string& what : broken_) broken(what);
  std::unordered_set<std::string> logged;
  for (const std::string& key : keys) {
    RecordFilter filter;
    filter.workload_key = key;
    RETURN_IF_ERROR(log->ForEachRecord(filter, [&](const StoredRecord& record) {
      const v1::TrialResult& result = record.result;
      const std::string& id = result.spec().trial_id();
      ++audit.records;
      if (!logged.insert(id).second)
        broken("trial " + id + " is twice in the log");
      if (result.provenance() == "tracker") {
        ++audit.of_tracker;
        return true;
      }
      ++audit.of_boards;
      const auto trial = trials_.find(id);
      if (trial == trials_.end() ||
          std::count(trial->second.sent.begin(), trial->second.sent.end(),
                     Fingerprint(result)) == 0) {
        broken("the log's record of trial " + id + " is not what a board sent");
      }
      return true;
    }));
  }
  ASSIGN_OR_RETURN(const int64_t count, log->CountRecords());
  if (count != audit.records) {
    broken(absl::StrCat("the log counts ", count, " records, but lists ",
                        audit.records));
  }
  for (const auto& [id, trial] : trials_) {
    if (logged.contains(id)) continue;
    if (trial.acknowledged) {
      broken("trial " + id + " was acknowledged and is not in the log");
    } else if (!trial.sent.empty()) {
      broken("trial " + id + " was finished and is not in the log");
    } else {
      broken("trial " + id + " was given to a board and has no outcome");
    }
  }
  return audit;
}

}  // namespace regatta::fleet_sim
