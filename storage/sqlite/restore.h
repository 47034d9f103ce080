// A backup takes a log's place.
//
// The copy that goes there is made beside the place, read whole and given its
// numbers before anything that is there changes; then it takes the name in one
// rename. So a restore that is killed leaves the log as it was, or the new one.
//
// Numbers: what the log handed out after the backup was made may still come
// home, from boards that were working, or stand in other labs' logs. The
// restored log therefore goes on with job numbers and trial ordinals that lie
// kSkippedJobs and kSkippedOrdinals higher. It keeps its LogId.
#ifndef REGATTA_STORAGE_SQLITE_RESTORE_H_
#define REGATTA_STORAGE_SQLITE_RESTORE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "storage/log_upkeep.h"

namespace regatta::sqlite {

inline constexpr int64_t kSkippedJobs = 10'000;
inline constexpr int64_t kSkippedOrdinals = 1'000'000;

struct RestoreOptions {
  // Also over a log that holds something, or what is no log.
  bool replace = false;
  // Hears of everything that is wrong with the backup; may be null.
  std::function<void(const LogFinding&)> finding;
  UpkeepProgress progress;  // may be null
};

struct Restored {
  std::string path;  // symbolic links followed
  int64_t records = 0;
  int64_t jobs = 0;
  int64_t bytes = 0;
};

// Puts a copy of the log in `backup` to `path`, with the mode and owner of what
// was there, else of its folder where this process may give files away. Records
// that a killed process left in the backup's write-ahead log come along; older
// layouts are brought up to date in the copy. The backup stays as it is.
//
// FailedPrecondition: a process holds the log or the backup (says who), both
// are one file, `path` holds something and `replace` is not set (says what), or
// the backup is of a newer version. DataLoss: the backup is damaged; every
// finding was told. Findings of other kinds (FindingKind) were told, too, and
// stop nothing; best-known is derived again where it differed. NotFound,
// PermissionDenied, InvalidArgument: as they say, with the path.
// ResourceExhausted: no room. Cancelled: `progress` stopped it. Nothing changed
// in all of these.
absl::StatusOr<Restored> RestoreLog(const std::string& backup,
                                    const std::string& path,
                                    const RestoreOptions& options);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_RESTORE_H_
