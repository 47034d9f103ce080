// SqliteExchange::Import.
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/import_check.h"
#include "storage/sqlite/best_known.h"
#include "storage/sqlite/exchange.h"
#include "storage/sqlite/job_store.h"
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

v1::ImportVerdict Refused(std::string reason) {
  return Verdict(v1::ImportVerdict::STATUS_REFUSED, std::move(reason));
}

v1::ImportVerdict NotHere(const std::string& what) {
  return Refused(absl::StrCat(
      what,
      " is said to be of this very log, which does not have it, and no restore "
      "of this log can have lost it"));
}

// Two logs that go on from copies of one both give its next names.
v1::ImportVerdict Differs(const std::string& what, const char* how) {
  return Refused(
      absl::StrCat(what, " is in this log with another ", how,
                   "; a copy of the log that named it went on by itself"));
}

std::string PublicationOf(const std::string& trial_id) {
  return absl::StrCat("the publication of trial ", trial_id);
}

v1::ImportVerdict OtherVerdict(const std::string& publication) {
  return Differs(publication, "verdict");
}

v1::ImportVerdict OtherResult(const std::string& trial_id) {
  return Differs(absl::StrCat("trial ", trial_id), "result");
}

// But for the provenance, which says by what way a result came.
std::string Content(v1::TrialResult result, const std::string& trial_id) {
  result.clear_provenance();
  result.mutable_spec()->set_trial_id(trial_id);
  return result.SerializeAsString();
}

// An entry at a time, inside the writer's transaction. A refusal is a verdict
// and has stored nothing; an error, the database's, ends the transaction.
class Importer {
 public:
  Importer(Connection& db, const std::map<std::string, WorkloadInfo>& workloads)
      : db_(db), workloads_(workloads) {}

  absl::StatusOr<v1::ImportVerdict> operator()(const NothingToKeep&) {
    return AddedOrKnown(false);
  }

  absl::StatusOr<v1::ImportVerdict> operator()(const OwnTrial& own) {
    ASSIGN_OR_RETURN(const std::optional<v1::TrialResult> stored,
                     Find(own.trial_id));
    if (!stored) {
      const v1::TrialSpec& spec = own.result.spec();
      ASSIGN_OR_RETURN(
          const bool lost,
          RestoreMayHaveLost(db_, spec.job_id(), spec.task(), spec.ordinal()));
      if (!lost) return NotHere(absl::StrCat("trial ", own.trial_id));
      if (!own.evidence.ok()) {
        return Refused(std::string(own.evidence.status().message()));
      }
      return (*this)(*own.evidence);
    }
    if (Content(*stored, own.trial_id) != Content(own.result, own.trial_id)) {
      return OtherResult(own.trial_id);
    }
    return AddedOrKnown(false);
  }

  absl::StatusOr<v1::ImportVerdict> operator()(const OwnJob& own) {
    ASSIGN_OR_RETURN(Statement find,
                     db_.Query("SELECT created_unix_ms, request FROM job "
                               "WHERE id = ?",
                               own.job.job_id()));
    ASSIGN_OR_RETURN(const bool found, find.Step());
    const std::string what = absl::StrCat("job ", own.job.job_id());
    if (found) return KnownJob(find, own.job, what);
    ASSIGN_OR_RETURN(const bool lost,
                     RestoreMayHaveLost(db_, own.job.job_id(), 0, 0));
    return lost ? (*this)(own.job) : NotHere(what);
  }

  absl::StatusOr<v1::ImportVerdict> operator()(const OwnPublication& own) {
    const Publication& publication = own.publication;
    ASSIGN_OR_RETURN(const KnownPublication known,
                     FindPublication(db_, publication, own.unix_ms));
    const std::string what = PublicationOf(publication.trial_id);
    if (known == KnownPublication::kSame) return AddedOrKnown(false);
    if (known == KnownPublication::kAnotherVerdict) return OtherVerdict(what);
    // A verdict makes an answer: of a trial that this log has, a job alone
    // gives one.
    ASSIGN_OR_RETURN(const std::optional<v1::TrialResult> stored,
                     Find(publication.trial_id));
    if (stored) return NotHere(what);
    return (*this)(own.evidence);
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
    if (db_.Changes() > 0) return AddedOrKnown(true);
    ASSIGN_OR_RETURN(Statement find,
                     db_.Query("SELECT created_unix_ms, request "
                               "FROM imported_job "
                               "WHERE log_id = ? AND job_id = ?",
                               job.log_id(), job.job_id()));
    const std::string what =
        absl::StrCat("job ", job.log_id(), ":", job.job_id());
    ASSIGN_OR_RETURN(const bool found, find.Step());
    return found ? KnownJob(find, job, what) : NotHere(what);
  }

  absl::StatusOr<v1::ImportVerdict> operator()(const ImportedRecord& record) {
    RETURN_IF_ERROR(
        Know(workloads_.at(record.result.spec().workload())).status());
    const EncodedRecord encoded = Encode(record.result);
    ASSIGN_OR_RETURN(
        const std::vector<AppendStatus> statuses,
        AppendRecords(db_, {&encoded, 1}, record.recorded_unix_ms));
    if (statuses[0] == AppendStatus::kStored) return AddedOrKnown(true);
    const std::string& id = encoded.trial_id;
    ASSIGN_OR_RETURN(const std::optional<v1::TrialResult> stored, Find(id));
    if (!stored || Content(*stored, id) != Content(record.result, id)) {
      return OtherResult(id);
    }
    return AddedOrKnown(false);
  }

  absl::StatusOr<v1::ImportVerdict> operator()(
      const ImportedPublication& entry) {
    ASSIGN_OR_RETURN(
        const AddedPublication added,
        AddImportedPublication(db_, entry.publication, entry.unix_ms));
    if (absl::IsAlreadyExists(added.refusal)) {
      return OtherVerdict(PublicationOf(entry.publication.trial_id));
    }
    if (!added.refusal.ok()) {
      return Refused(std::string(added.refusal.message()));
    }
    return AddedOrKnown(added.added);
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
  // Whether the job's row, of time and request, is what `job` says.
  static v1::ImportVerdict KnownJob(const Statement& row,
                                    const v1::LoggedJob& job,
                                    const std::string& what) {
    // Read and written again: the bytes may be another release's.
    v1::SubmitJobRequest stored;
    if (row.Int(0) != job.created_unix_ms() ||
        !stored.ParseFromString(row.Text(1)) ||
        stored.SerializeAsString() != job.request().SerializeAsString()) {
      return Differs(what, "request or time");
    }
    return AddedOrKnown(false);
  }

  absl::StatusOr<std::optional<v1::TrialResult>> Find(
      const std::string& trial_id) {
    ASSIGN_OR_RETURN(Statement find, db_.Query("SELECT " REGATTA_RECORD_COLUMNS
                                               " FROM " REGATTA_RECORD_TABLES
                                               " WHERE r.trial_id = ?",
                                               trial_id));
    ASSIGN_OR_RETURN(const bool found, find.Step());
    if (!found) return std::optional<v1::TrialResult>();
    ASSIGN_OR_RETURN(StoredRecord record, ReadRecord(find, 0));
    return std::optional<v1::TrialResult>(std::move(record.result));
  }

  Connection& db_;
  const std::map<std::string, WorkloadInfo>& workloads_;  // by text
  std::set<std::string> put_;  // keys of workloads, by this import
};

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
    Importer importer(db, checker.workloads());
    for (const absl::StatusOr<CheckedEntry>& entry : checked) {
      if (!entry.ok()) {
        verdicts.push_back(Refused(std::string(entry.status().message())));
        continue;
      }
      ASSIGN_OR_RETURN(v1::ImportVerdict verdict, std::visit(importer, *entry));
      verdicts.push_back(std::move(verdict));
    }
    return absl::OkStatus();
  }));
  return verdicts;
}

}  // namespace regatta::sqlite
