#include "storage/sqlite/sqlite_tuning_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/best_known.h"
#include "storage/sqlite/best_queries.h"
#include "storage/sqlite/job_store.h"
#include "storage/sqlite/read_again.h"
#include "storage/sqlite/rebuild_best.h"
#include "storage/sqlite/record_store.h"
#include "storage/validate.h"

namespace regatta::sqlite {
namespace {

// Records that are read at a time, and held in memory, by ForEachRecord.
constexpr size_t kPageRecords = 256;
// Rows, likewise, by ForEachBest.
constexpr int64_t kPageBest = 256;

absl::StatusOr<std::vector<StoredRecord>> GetRecords(
    Connection& db, absl::Span<const int64_t> ids) {
  std::vector<StoredRecord> records;
  records.reserve(ids.size());
  for (const int64_t id : ids) {
    ASSIGN_OR_RETURN(StoredRecord record, GetRecord(db, id));
    records.push_back(std::move(record));
  }
  return records;
}

absl::StatusOr<std::vector<std::string>> FindDeviceClasses(Connection& db,
                                                           bool imported) {
  ASSIGN_OR_RETURN(
      Statement list,
      db.Query("SELECT DISTINCT device_class FROM cell WHERE imported <= ?1 "
               "ORDER BY 1",
               imported));
  std::vector<std::string> classes;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, list.Step());
    if (!row) return classes;
    classes.push_back(list.Text(0));
  }
}

// Moves the value out, or says why there is none.
template <typename T>
absl::Status Take(absl::StatusOr<T> from, T& to) {
  if (!from.ok()) return from.status();
  to = *std::move(from);
  return absl::OkStatus();
}

}  // namespace

SqliteTuningLog::SqliteTuningLog(std::string path, std::string log_id,
                                 std::unique_ptr<FileLock> lock,
                                 std::unique_ptr<Connection> writer,
                                 Connection::Mode reader_mode, WalLimits limits)
    : path_(std::move(path)),
      log_id_(std::move(log_id)),
      watch_(path_),
      lock_(std::move(lock)),
      writer_(writer == nullptr ? nullptr
                                : std::make_unique<GroupWriter>(
                                      std::move(writer), limits,
                                      [this] { return held_.AskOldest(); })),
      readers_(path_, reader_mode, &held_),
      upkeep_(path_, &readers_, writer_.get(), &watch_),
      exchange_(log_id_, &readers_,
                [this](const std::function<absl::Status(Connection&)>& write) {
                  return Write(write);
                }) {
  if (writer_ == nullptr) return;
  // One reader is open from the start, write-ahead log and all: it reads on
  // when the file is taken away. A failure shows with the first real read.
  const auto db = readers_.Borrow();
  if (db.ok()) (void)(*db)->Number("SELECT count(*) FROM meta");
}

absl::Status SqliteTuningLog::Write(
    const std::function<absl::Status(Connection&)>& operation) {
  if (writer_ == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": the tuning log was opened to be read only"));
  }
  {
    std::lock_guard lock(seal_mutex_);
    RETURN_IF_ERROR(sealed_);
  }
  // What was committed to a file that nobody will ever open again is not
  // stored.
  RETURN_IF_ERROR(watch_.Check());
  RETURN_IF_ERROR(writer_->Write(operation));
  return watch_.Check();
}

void SqliteTuningLog::Seal(const absl::Status& why) {
  std::lock_guard lock(seal_mutex_);
  if (sealed_.ok()) sealed_ = why;
}

absl::Status SqliteTuningLog::PutWorkload(const WorkloadInfo& workload) {
  RETURN_IF_ERROR(ValidateWorkload(workload));
  return Write(
      [&](Connection& db) { return sqlite::PutWorkload(db, workload); });
}

absl::StatusOr<std::vector<AppendStatus>> SqliteTuningLog::Append(
    absl::Span<const v1::TrialResult> results, int64_t recorded_unix_ms) {
  // On the caller's thread, so that the writer only writes.
  std::vector<EncodedRecord> records;
  records.reserve(results.size());
  for (const v1::TrialResult& result : results) {
    RETURN_IF_ERROR(ValidateResult(result));
    records.push_back(Encode(result));
  }
  std::vector<AppendStatus> statuses;
  RETURN_IF_ERROR(Write([&](Connection& db) {
    return Take(AppendRecords(db, records, recorded_unix_ms), statuses);
  }));
  return statuses;
}

absl::Status SqliteTuningLog::Publish(const Publication& publication,
                                      int64_t unix_ms) {
  RETURN_IF_ERROR(ValidatePublication(publication));
  return Write(
      [&](Connection& db) { return AddPublication(db, publication, unix_ms); });
}

absl::StatusOr<std::optional<BestKnown>> SqliteTuningLog::Best(
    const BestKey& key) const {
  return ReadAgain(readers_, [&](Connection& db) { return FindBest(db, key); });
}

absl::StatusOr<std::vector<BestKnown>> SqliteTuningLog::BestOfWorkload(
    std::string_view workload_key) const {
  return ReadAgain(readers_, [&](Connection& db) {
    return FindBestOfWorkload(db, workload_key);
  });
}

absl::StatusOr<std::vector<BestKnown>> SqliteTuningLog::BestOfNeighbours(
    const WorkloadInfo& workload, const BestKey& key, int limit) const {
  RETURN_IF_ERROR(ValidateWorkload(workload));
  return ReadAgain(readers_, [&](Connection& db) {
    return FindBestOfNeighbours(db, workload, key, limit);
  });
}

absl::Status SqliteTuningLog::ForEachBest(
    const std::function<bool(const WorkloadInfo&, const BestKnown&)>& visit)
    const {
  std::optional<BestKey> last;
  while (true) {
    ASSIGN_OR_RETURN(const auto page, ReadAgain(readers_, [&](Connection& db) {
                       return FindBestAfter(db, last, kPageBest);
                     }));
    for (const auto& [workload, best] : page) {
      if (!visit(workload, best)) return absl::OkStatus();
    }
    if (static_cast<int64_t>(page.size()) < kPageBest) return absl::OkStatus();
    last = page.back().second.key;
  }
}

absl::StatusOr<std::vector<ClassFacts>> SqliteTuningLog::FactsOfClasses()
    const {
  return ReadAgain(readers_,
                   [&](Connection& db) { return FindClassFacts(db); });
}

absl::StatusOr<int64_t> SqliteTuningLog::RebuildBest(
    const UpkeepProgress& progress) {
  return sqlite::RebuildBest(
      readers_,
      [this](const std::function<absl::Status(Connection&)>& write) {
        return Write(write);
      },
      progress);
}

absl::Status SqliteTuningLog::ForEachRecord(
    const RecordFilter& filter,
    const std::function<bool(const StoredRecord&)>& visit) const {
  if (filter.workload_key.empty()) {
    return absl::InvalidArgumentError("a record filter has no workload_key");
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                   ReadAgain(readers_, [&](Connection& db) {
                     return FindRecords(db, filter);
                   }));
  // No connection is held while `visit` runs: it may take its time, and may
  // call the log. Records never change, so the pages fit together.
  for (size_t first = 0; first < ids.size(); first += kPageRecords) {
    const size_t size = std::min(kPageRecords, ids.size() - first);
    ASSIGN_OR_RETURN(const std::vector<StoredRecord> page,
                     ReadAgain(readers_, [&](Connection& db) {
                       return GetRecords(
                           db, absl::MakeConstSpan(ids).subspan(first, size));
                     }));
    for (const StoredRecord& record : page) {
      if (!visit(record)) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SqliteTuningLog::CountRecords() const {
  // Records are never removed, so ids have no gaps; counting rows would read
  // the whole table.
  return ReadAgain(readers_, [](Connection& db) {
    return db.Number("SELECT coalesce(max(id), 0) FROM record");
  });
}

absl::StatusOr<std::vector<std::string>> SqliteTuningLog::DeviceClasses(
    bool imported) const {
  return ReadAgain(readers_, [&](Connection& db) {
    return FindDeviceClasses(db, imported);
  });
}

absl::StatusOr<int64_t> SqliteTuningLog::CreateJob(
    const v1::SubmitJobRequest& request, int64_t unix_ms) {
  int64_t id = 0;
  RETURN_IF_ERROR(Write([&](Connection& db) {
    return Take(sqlite::CreateJob(db, request, unix_ms), id);
  }));
  return id;
}

absl::Status SqliteTuningLog::SaveJobs(absl::Span<const JobProgress> jobs) {
  return Write([&](Connection& db) {
    for (const JobProgress& one : jobs) {
      RETURN_IF_ERROR(sqlite::SaveJob(db, one));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<TuningLog::StoredJob> SqliteTuningLog::GetJob(
    int64_t job_id) const {
  return ReadAgain(readers_,
                   [&](Connection& db) { return sqlite::GetJob(db, job_id); });
}

absl::StatusOr<std::vector<TuningLog::StoredJob>> SqliteTuningLog::ListJobs()
    const {
  return ReadAgain(readers_,
                   [](Connection& db) { return sqlite::ListJobs(db); });
}

absl::StatusOr<int64_t> SqliteTuningLog::ReserveOrdinals(int64_t job_id,
                                                         int task,
                                                         int64_t count) {
  int64_t first = 0;
  RETURN_IF_ERROR(Write([&](Connection& db) {
    return Take(sqlite::ReserveOrdinals(db, job_id, task, count), first);
  }));
  return first;
}

}  // namespace regatta::sqlite
