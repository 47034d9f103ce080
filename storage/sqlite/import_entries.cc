// SqliteExchange::Import.
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/import_check.h"
#include "storage/sqlite/best_known.h"
#include "storage/sqlite/exchange.h"
#include "storage/sqlite/record_store.h"

namespace regatta::sqlite {
namespace {

v1::ImportVerdict Verdict(v1::ImportVerdict::Status status,
                          std::string reason = "") {
  v1::ImportVerdict verdict;
  verdict.set_status(status);
  verdict.set_reason(std::move(reason));
  return verdict;
}

v1::ImportVerdict AddedOrKnown(bool added) {
  return Verdict(added ? v1::ImportVerdict::STATUS_ADDED
                       : v1::ImportVerdict::STATUS_KNOWN);
}

absl::Status NotHere(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(
      what,
      " is said to be of this very log, which does not have it; a log's own "
      "records come back with a backup only"));
}

// An entry at a time, inside the writer's transaction. A refusal is
// InvalidArgument, NotFound or FailedPrecondition and has stored nothing; any
// other error ends the transaction.
class Importer {
 public:
  explicit Importer(Connection& db) : db_(db) {}

  absl::StatusOr<v1::ImportVerdict> operator()(const NothingToKeep&) {
    return AddedOrKnown(false);
  }

  absl::StatusOr<v1::ImportVerdict> operator()(const OwnTrial& own) {
    ASSIGN_OR_RETURN(
        Statement find,
        db_.Query("SELECT 1 FROM record WHERE trial_id = ?", own.trial_id));
    ASSIGN_OR_RETURN(const bool found, find.Step());
    if (!found) return NotHere(absl::StrCat("trial ", own.trial_id));
    return AddedOrKnown(false);
  }

  absl::StatusOr<v1::ImportVerdict> operator()(const OwnJob& own) {
    ASSIGN_OR_RETURN(Statement find,
                     db_.Query("SELECT 1 FROM job WHERE id = ?", own.job_id));
    ASSIGN_OR_RETURN(const bool found, find.Step());
    if (!found) return NotHere(absl::StrCat("job ", own.job_id));
    return AddedOrKnown(false);
  }

  absl::StatusOr<v1::ImportVerdict> operator()(const WorkloadInfo& workload) {
    ASSIGN_OR_RETURN(const bool added, Know(workload));
    return AddedOrKnown(added);
  }

  absl::StatusOr<v1::ImportVerdict> operator()(const v1::LoggedJob& job) {
    RETURN_IF_ERROR(
        db_.Run("INSERT INTO imported_job(log_id, job_id, created_unix_ms, "
                "request) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                job.log_id(), job.job_id(), job.created_unix_ms(),
                Blob{job.request().SerializeAsString()}));
    return AddedOrKnown(db_.Changes() > 0);
  }

  absl::StatusOr<v1::ImportVerdict> operator()(const ImportedRecord& record) {
    const EncodedRecord encoded = Encode(record.result);
    ASSIGN_OR_RETURN(
        const std::vector<AppendStatus> statuses,
        AppendRecords(db_, {&encoded, 1}, record.recorded_unix_ms));
    return AddedOrKnown(statuses[0] == AppendStatus::kStored);
  }

  absl::StatusOr<v1::ImportVerdict> operator()(
      const ImportedPublication& entry) {
    ASSIGN_OR_RETURN(
        const bool added,
        AddImportedPublication(db_, entry.publication, entry.unix_ms));
    return AddedOrKnown(added);
  }

  // Whether the workload is new to the log.
  absl::StatusOr<bool> Know(const WorkloadInfo& workload) {
    if (!put_.insert(workload.key).second) return false;
    bool found = false;
    {
      ASSIGN_OR_RETURN(
          Statement find,
          db_.Query("SELECT 1 FROM workload WHERE key = ?", workload.key));
      ASSIGN_OR_RETURN(found, find.Step());
    }
    RETURN_IF_ERROR(PutWorkload(db_, workload));
    return !found;
  }

 private:
  Connection& db_;
  std::set<std::string> put_;  // keys of workloads, by this import
};

bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
         absl::IsFailedPrecondition(status);
}

}  // namespace

absl::StatusOr<std::vector<v1::ImportVerdict>> SqliteExchange::Import(
    absl::Span<const v1::LogEntry* const> entries,
    const ImportOptions& options) {
  RETURN_IF_ERROR(CheckImportName(options.name));
  // On the caller's thread, so that the writer only writes.
  ImportChecker checker(log_id_, options);
  std::vector<absl::StatusOr<CheckedEntry>> checked;
  for (const v1::LogEntry* entry : entries) {
    checked.push_back(checker.Check(*entry));
  }
  std::vector<v1::ImportVerdict> verdicts;
  RETURN_IF_ERROR(write_([&](Connection& db) -> absl::Status {
    verdicts.clear();
    Importer importer(db);
    for (const absl::StatusOr<CheckedEntry>& entry : checked) {
      absl::Status refused = entry.status();
      if (entry.ok()) {
        if (const auto* record = std::get_if<ImportedRecord>(&*entry)) {
          const auto& spec = record->result.spec();
          RETURN_IF_ERROR(
              importer.Know(checker.workloads().at(spec.workload())).status());
        }
        auto verdict = std::visit(importer, *entry);
        if (verdict.ok()) {
          verdicts.push_back(*std::move(verdict));
          continue;
        }
        refused = verdict.status();
      }
      if (!IsRefusal(refused)) return refused;
      verdicts.push_back(Verdict(v1::ImportVerdict::STATUS_REFUSED,
                                 std::string(refused.message())));
    }
    return absl::OkStatus();
  }));
  return verdicts;
}

}  // namespace regatta::sqlite
