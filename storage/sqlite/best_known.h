// The view best_known: which record is the best of each cell, by the rule in
// tuning_log.h. All of it runs inside the writer's transaction.
#ifndef REGATTA_STORAGE_SQLITE_BEST_KNOWN_H_
#define REGATTA_STORAGE_SQLITE_BEST_KNOWN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/record_codec.h"
#include "storage/tuning_log.h"

namespace regatta::sqlite {

// Takes a record that was just inserted into account.
absl::Status NoteRecord(Connection& db, int64_t cell, int64_t record_id,
                        const EncodedRecord& record);

// Stores the publication and makes its record the best of its cell. NotFound:
// no such trial. InvalidArgument: the trial is of another key.
// FailedPrecondition: its record may not become the best.
absl::Status AddPublication(Connection& db, const Publication& publication,
                            int64_t unix_ms);

// Stores another log's publication, unless it is there already, and derives the
// best of its cell. A record that was disproved later keeps its publication.
// An error is the database's.
struct AddedPublication {
  bool added = false;    // false: it was there, or is refused
  absl::Status refusal;  // as the errors above
};
absl::StatusOr<AddedPublication> AddImportedPublication(
    Connection& db, const Publication& publication, int64_t unix_ms);

// Derives every cell's best from the records and publications. Returns how many
// rows are not what they were.
absl::StatusOr<int64_t> RebuildBestKnown(Connection& db);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_BEST_KNOWN_H_
