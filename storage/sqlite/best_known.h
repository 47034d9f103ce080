// The view best_known: which record is the best of each cell, by the rule in
// tuning_log.h. What changes it runs inside the writer's transaction.
#ifndef REGATTA_STORAGE_SQLITE_BEST_KNOWN_H_
#define REGATTA_STORAGE_SQLITE_BEST_KNOWN_H_

#include <cstdint>
#include <optional>

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

// Whether the log has the publication: a verdict of its trial, given at a time.
enum class KnownPublication {
  kNone,  // none of the trial
  kSame,
  kAnotherTime,     // the same verdict, given at another time
  kAnotherVerdict,  // another one, of the key or of another key
};
absl::StatusOr<KnownPublication> FindPublication(Connection& db,
                                                 const Publication& publication,
                                                 int64_t unix_ms);

// Stores another log's publication, unless it is there already, and derives the
// best of its cell. A record that was disproved later keeps its publication.
// An error is the database's.
struct AddedPublication {
  bool added = false;    // false: it was there, or is refused
  absl::Status refusal;  // as the errors above; AlreadyExists: its trial has
                         // another verdict
};
absl::StatusOr<AddedPublication> AddImportedPublication(
    Connection& db, const Publication& publication, int64_t unix_ms);

// A row of the view.
struct BestRow {
  int64_t record_id = 0;
  std::optional<int64_t> publication_id;
  friend bool operator==(const BestRow&, const BestRow&) = default;
};
// The best of a cell by the rule, from its records and publications alone;
// reads only, and takes as long as the cell has records.
absl::StatusOr<std::optional<BestRow>> FindBestRow(Connection& db,
                                                   int64_t cell);

// Derives every cell's best from the records and publications.
absl::Status DeriveAllBest(Connection& db);

// The last rows that a state of the log had.
struct BestMarks {
  int64_t record = 0, publication = 0;
};
// Sets the row of the cell to `best`, which FindBestRow gave for the state of
// `marks`, then takes into account what came later: as long as that is, and no
// longer, however many records the cell has. Returns whether the row is not
// what it was.
absl::StatusOr<bool> CorrectBest(Connection& db, int64_t cell,
                                 const std::optional<BestRow>& best,
                                 const BestMarks& marks);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_BEST_KNOWN_H_
