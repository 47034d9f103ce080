// The tables workload, cell, context and record.
//
// Functions that write run inside the writer's transaction.
#ifndef REGATTA_STORAGE_SQLITE_RECORD_STORE_H_
#define REGATTA_STORAGE_SQLITE_RECORD_STORE_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/record_codec.h"
#include "storage/tuning_log.h"

namespace regatta::sqlite {

// The columns that ReadRecord reads, in its order; the statement names record
// r, context x, cell c and workload w.
#define REGATTA_RECORD_COLUMNS                                       \
  "r.trial_id, x.bytes, r.body, r.binary_hash, r.recorded_unix_ms, " \
  "w.family, w.extents"
#define REGATTA_RECORD_TABLES                       \
  "record r JOIN context x ON x.id = r.context_id " \
  "JOIN cell c ON c.id = r.cell_id JOIN workload w ON w.id = c.workload_id"
inline constexpr int kRecordColumns = 7;

// Reads the record in columns `first` and on of the row at hand.
absl::StatusOr<StoredRecord> ReadRecord(const Statement& row, int first);

absl::Status PutWorkload(Connection& db, const WorkloadInfo& workload);

// The id of the key's cell; nothing when it has no records.
absl::StatusOr<std::optional<int64_t>> FindCell(Connection& db,
                                                const BestKey& key);

// Stores the records that are new, in order, and keeps best-known up to date.
// InvalidArgument names a record whose workload is unknown, or whose ordinal
// its job has not handed out.
absl::StatusOr<std::vector<AppendStatus>> AppendRecords(
    Connection& db, absl::Span<const EncodedRecord> records,
    int64_t recorded_unix_ms);

// Ids of the matching records, oldest first.
absl::StatusOr<std::vector<int64_t>> FindRecords(Connection& db,
                                                 const RecordFilter& filter);
absl::StatusOr<StoredRecord> GetRecord(Connection& db, int64_t id);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_RECORD_STORE_H_
