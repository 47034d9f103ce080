// Connection::CopyTo.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/status_macros.h"
#include "base/sync_path.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/sqlite_status.h"

namespace regatta::sqlite {
namespace {

// Pages between two reports: 4 MiB or so.
constexpr int kStepPages = 1024;

absl::Status ErrorOf(sqlite3* db, int code, const std::string& path) {
  return SqliteStatus(code, sqlite3_system_errno(db), sqlite3_errmsg(db), path);
}

}  // namespace

absl::Status Connection::CopyTo(
    const std::string& path,
    const std::function<bool(int64_t done, int64_t total)>& progress) {
  // Holds one state of the log while its pages are copied: without it the copy
  // would begin anew with every commit.
  ASSIGN_OR_RETURN(const ReadTransaction snapshot,
                   ReadTransaction::Begin(*this));
  RETURN_IF_ERROR(Number("SELECT count(*) FROM meta").status());
  sqlite3* copy = nullptr;
  const absl::Cleanup close_copy = [&copy] { sqlite3_close(copy); };
  // SQLite takes a file that is there; this must be a new one.
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return SystemStatus(errno, "create", path);
  close(fd);
  absl::Cleanup remove = [&path] { unlink(path.c_str()); };
  int code =
      sqlite3_open_v2(path.c_str(), &copy, SQLITE_OPEN_READWRITE, nullptr);
  if (code != SQLITE_OK) return ErrorOf(copy, code, path);
  // It is whole at the end or of no use: no journal, one sync.
  code =
      sqlite3_exec(copy, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF",
                   nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return ErrorOf(copy, code, path);
  sqlite3_backup* backup = sqlite3_backup_init(copy, "main", db_, "main");
  if (backup == nullptr) return ErrorOf(copy, sqlite3_errcode(copy), path);
  bool go_on = true;
  do {
    code = sqlite3_backup_step(backup, kStepPages);
    const int64_t total = sqlite3_backup_pagecount(backup);
    if (progress) {
      go_on = progress(total - sqlite3_backup_remaining(backup), total);
    }
  } while (code == SQLITE_OK && go_on);
  const int finished = sqlite3_backup_finish(backup);
  if (!go_on) return absl::CancelledError("the copy was stopped");
  if (code != SQLITE_DONE || finished != SQLITE_OK) {
    return ErrorOf(copy, code == SQLITE_DONE ? finished : code, path);
  }
  code = sqlite3_close(copy);
  if (code != SQLITE_OK) return ErrorOf(copy, code, path);
  copy = nullptr;
  if (const int error = SyncPath(path); error != 0) {
    return SystemStatus(error, "sync", path);
  }
  std::move(remove).Cancel();
  return absl::OkStatus();
}

}  // namespace regatta::sqlite
