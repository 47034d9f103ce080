#include "storage/sqlite/record_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/sqlite/best_known.h"
#include "storage/sqlite/job_store.h"

namespace regatta::sqlite {
namespace {

// The id of the key's cell, made when it is new; nothing when its workload is
// unknown.
absl::StatusOr<std::optional<int64_t>> MakeCell(Connection& db,
                                                const BestKey& key) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> found, FindCell(db, key));
  if (found.has_value()) return found;
  RETURN_IF_ERROR(
      db.Run("INSERT INTO cell(workload_id, device_class, threads, cache, "
             "imported) SELECT id, ?2, ?3, ?4, ?5 FROM workload WHERE key = ?1",
             key.workload_key, key.device_class, key.threads,
             static_cast<int>(key.cache), key.imported));
  if (db.Changes() == 0) return std::optional<int64_t>();
  return std::optional<int64_t>(db.LastInsertId());
}

absl::StatusOr<int64_t> MakeContext(Connection& db,
                                    const EncodedRecord& record) {
  {
    ASSIGN_OR_RETURN(Statement find,
                     db.Query("SELECT id FROM context WHERE digest = ?",
                              Blob{record.context_digest}));
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (row) return find.Int(0);
  }
  RETURN_IF_ERROR(db.Run("INSERT INTO context(digest, bytes) VALUES (?, ?)",
                         Blob{record.context_digest}, Blob{record.context}));
  return db.LastInsertId();
}

absl::StatusOr<bool> IsStored(Connection& db, const std::string& trial_id) {
  ASSIGN_OR_RETURN(
      Statement find,
      db.Query("SELECT 1 FROM record WHERE trial_id = ?", trial_id));
  return find.Step();
}

// An ordinal that was never handed out would be, and one of the two results be
// taken for the other. Jobs alone hand them out.
absl::Status CheckOrdinal(Connection& db, const EncodedRecord& record) {
  if (record.key.imported) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool job, HasJob(db, record.job_id));
  if (!job) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t next,
                   NextOrdinal(db, record.job_id, record.task));
  if (record.ordinal < next) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("trial ", record.trial_id, " has ordinal ", record.ordinal,
                   ", but its task was handed out those below ", next));
}

absl::StatusOr<AppendStatus> AppendRecord(Connection& db,
                                          const EncodedRecord& record,
                                          int64_t recorded_unix_ms) {
  ASSIGN_OR_RETURN(const bool stored, IsStored(db, record.trial_id));
  if (stored) return AppendStatus::kDuplicate;
  RETURN_IF_ERROR(CheckOrdinal(db, record));
  ASSIGN_OR_RETURN(const std::optional<int64_t> cell, MakeCell(db, record.key));
  if (!cell.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("trial ", record.trial_id, " is of the workload ",
                     record.key.workload_key, ", which the log does not know"));
  }
  ASSIGN_OR_RETURN(const int64_t context, MakeContext(db, record));
  std::optional<Blob> hash;
  if (record.binary_hash.has_value()) hash = Blob{*record.binary_hash};
  RETURN_IF_ERROR(db.Run(
      "INSERT INTO record(trial_id, cell_id, context_id, job_id, outcome, "
      "kind, abandoned, time_ns, schedule_hash, binary_hash, "
      "recorded_unix_ms, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      record.trial_id, *cell, context, record.job_id, record.outcome,
      record.kind, record.abandoned, record.time_ns, record.schedule_hash, hash,
      recorded_unix_ms, Blob{record.body}));
  RETURN_IF_ERROR(NoteRecord(db, *cell, db.LastInsertId(), record));
  return AppendStatus::kStored;
}

}  // namespace

absl::StatusOr<StoredRecord> ReadRecord(const Statement& row, int first) {
  StoredRecord record;
  std::optional<std::string_view> hash;
  if (!row.IsNull(first + 3)) hash = row.Bytes(first + 3);
  ASSIGN_OR_RETURN(record.result, Decode(row.Bytes(first), row.Bytes(first + 1),
                                         row.Bytes(first + 2), hash));
  record.recorded_unix_ms = row.Int(first + 4);
  record.family = row.Text(first + 5);
  ASSIGN_OR_RETURN(record.extents, DecodeExtents(row.Bytes(first + 6)));
  return record;
}

absl::Status PutWorkload(Connection& db, const WorkloadInfo& workload) {
  // The key is the identity. The rest follows from it, and a later release may
  // derive it better.
  return db.Run(
      "INSERT INTO workload(key, text, family, structure, extents) "
      "VALUES (?, ?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET "
      "text = excluded.text, family = excluded.family, "
      "structure = excluded.structure, extents = excluded.extents "
      "WHERE (text, family, structure, extents) <> (excluded.text, "
      "excluded.family, excluded.structure, excluded.extents)",
      workload.key, workload.text, workload.family, workload.structure,
      EncodeExtents(workload.extents));
}

absl::StatusOr<std::optional<int64_t>> FindCell(Connection& db,
                                                const BestKey& key) {
  ASSIGN_OR_RETURN(
      Statement find,
      db.Query(
          "SELECT c.id FROM workload w JOIN cell c ON c.workload_id = w.id "
          "WHERE w.key = ? AND c.device_class = ? AND c.threads = ? "
          "AND c.cache = ? AND c.imported = ?",
          key.workload_key, key.device_class, key.threads,
          static_cast<int>(key.cache), key.imported));
  ASSIGN_OR_RETURN(const bool row, find.Step());
  return row ? std::optional<int64_t>(find.Int(0)) : std::nullopt;
}

absl::StatusOr<std::vector<AppendStatus>> AppendRecords(
    Connection& db, absl::Span<const EncodedRecord> records,
    int64_t recorded_unix_ms) {
  std::vector<AppendStatus> statuses;
  statuses.reserve(records.size());
  for (const EncodedRecord& record : records) {
    ASSIGN_OR_RETURN(const AppendStatus status,
                     AppendRecord(db, record, recorded_unix_ms));
    statuses.push_back(status);
  }
  return statuses;
}

absl::StatusOr<std::vector<int64_t>> FindRecords(Connection& db,
                                                 const RecordFilter& filter) {
  std::optional<std::string> device_class;
  if (!filter.device_class.empty()) device_class = filter.device_class;
  std::optional<int> cache;
  if (filter.cache.has_value()) cache = static_cast<int>(*filter.cache);
  // CROSS JOIN keeps the order: from the few cells to their records.
  ASSIGN_OR_RETURN(
      Statement find,
      db.Query("SELECT r.id FROM workload w "
               "CROSS JOIN cell c ON c.workload_id = w.id "
               "CROSS JOIN record r ON r.cell_id = c.id "
               "WHERE w.key = ?1 AND (?2 IS NULL OR c.device_class = ?2) "
               "AND (?3 IS NULL OR c.threads = ?3) "
               "AND (?4 IS NULL OR c.cache = ?4) "
               "AND (?6 OR c.imported = 0) "
               "AND (?5 IS NULL OR r.job_id = ?5)",
               filter.workload_key, device_class, filter.threads, cache,
               filter.job_id, filter.imported));
  std::vector<int64_t> ids;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) break;
    ids.push_back(find.Int(0));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

absl::StatusOr<StoredRecord> GetRecord(Connection& db, int64_t id) {
  ASSIGN_OR_RETURN(Statement get,
                   db.Query("SELECT " REGATTA_RECORD_COLUMNS
                            " FROM " REGATTA_RECORD_TABLES " WHERE r.id = ?",
                            id));
  ASSIGN_OR_RETURN(const bool row, get.Step());
  if (!row) {
    return absl::DataLossError(
        absl::StrCat("record ", id, " or its workload is missing"));
  }
  return ReadRecord(get, 0);
}

}  // namespace regatta::sqlite
