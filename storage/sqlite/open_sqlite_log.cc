// Everything between a path and a log that may be used, in order.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/sync_path.h"
#include "base/unique_fd.h"
#include "storage/sqlite/check_log.h"
#include "storage/sqlite/log_file.h"
#include "storage/sqlite/looking.h"
#include "storage/sqlite/migrations.h"
#include "storage/sqlite/sqlite_status.h"
#include "storage/sqlite/sqlite_tuning_log.h"

namespace regatta::sqlite {
namespace {

absl::Status UseWriteAheadLog(Connection& db, const std::string& path) {
  ASSIGN_OR_RETURN(Statement mode, db.Query("PRAGMA journal_mode = WAL"));
  ASSIGN_OR_RETURN(const bool row, mode.Step());
  if (!row || mode.Bytes(0) != "wal") {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": this file system does not support SQLite's write-ahead log; "
        "put the tuning log on a local disk"));
  }
  // The switch is committed behind its row, and may fail there.
  return mode.Step().status();
}

absl::Status BuildNew(const std::string& path) {
  // It tells of a lab's kernels and people: its owner's alone. What SQLite puts
  // beside it has the same mode.
  const UniqueFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return SystemStatus(errno, "create", path);
  ASSIGN_OR_RETURN(const std::unique_ptr<Connection> db,
                   Connection::Open(path, Connection::Mode::kCreate));
  RETURN_IF_ERROR(Migrate(*db, Migrations()));
  return UseWriteAheadLog(*db, path);
}

// Makes the log under another name and renames it, so that no crash leaves half
// a log.
absl::Status CreateLog(const std::string& path) {
  const std::string fresh = absl::StrCat(path, ".new");
  RemoveLogFiles(fresh);  // of an earlier try; the lock is ours
  const absl::Cleanup cleanup = [&fresh] { RemoveLogFiles(fresh); };
  RETURN_IF_ERROR(Annotate(BuildNew(fresh), "creating the tuning log"));
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 &&
      chmod(fresh.c_str(), info.st_mode & 0777) != 0) {
    return SystemStatus(errno, "set the mode of", fresh);
  }
  if (const int error = SyncPath(fresh); error != 0) {
    return SystemStatus(error, "sync", fresh);
  }
  if (rename(fresh.c_str(), path.c_str()) != 0) {
    return SystemStatus(errno, "create", path);
  }
  const int error = SyncFolderOf(path);
  return error == 0 ? absl::OkStatus()
                    : SystemStatus(error, "sync the folder of", path);
}

absl::StatusOr<int64_t> CheckVersion(const std::string& path,
                                     const LogFile& file) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Connection> db,
                   Connection::Open(path, LookingMode(file)));
  return CheckLog(*db, path, static_cast<int64_t>(Migrations().size()));
}

absl::StatusOr<std::string> ReadLogId(Connection& db) {
  ASSIGN_OR_RETURN(Statement get,
                   db.Query("SELECT value FROM meta WHERE name = 'log_id'"));
  ASSIGN_OR_RETURN(const bool row, get.Step());
  if (!row) return absl::DataLossError("the tuning log has no log_id");
  return get.Text(0);
}

absl::StatusOr<std::unique_ptr<Connection>> OpenWriter(
    const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<Connection> db,
                   Connection::Open(path, Connection::Mode::kReadWrite));
  RETURN_IF_ERROR(UseWriteAheadLog(*db, path));
  RETURN_IF_ERROR(Migrate(*db, Migrations()));
  return db;
}

absl::Status NoLog(const std::string& path) {
  return absl::NotFoundError(absl::StrCat(
      path, access(path.c_str(), F_OK) == 0
                ? ": is empty, so no tuning log yet; a server makes it one"
                : ": no such tuning log"));
}

absl::StatusOr<std::unique_ptr<TuningLog>> OpenToLook(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, FileLock::Shared(path));
  ASSIGN_OR_RETURN(const LogFile file, LookAtLogFile(path));
  if (!file.exists) return NoLog(path);
  RETURN_IF_ERROR(lock->LockLogFile(path));
  RETURN_IF_ERROR(CheckIndex(path, file));
  ASSIGN_OR_RETURN(const int64_t version, CheckVersion(path, file));
  if (version < static_cast<int64_t>(Migrations().size())) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": the tuning log has version ", version, ", older than ",
        Migrations().size(), "; start a server on it once, which migrates it"));
  }
  std::string log_id;
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<Connection> db,
                     Connection::Open(path, LookingMode(file)));
    ASSIGN_OR_RETURN(log_id, ReadLogId(*db));
  }
  return std::make_unique<SqliteTuningLog>(
      path, std::move(log_id), std::move(lock), nullptr, LookingMode(file));
}

absl::StatusOr<std::unique_ptr<TuningLog>> OpenToWrite(
    const std::string& path, const OpenOptions& options, WalLimits limits) {
  ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock,
                   FileLock::Exclusive(path, options.holder));
  bool created = false;
  // After the writer below is closed.
  absl::Cleanup discard = [&] {
    if (created) RemoveLogFiles(path);
    lock->Discard();
  };
  ASSIGN_OR_RETURN(const LogFile file, LookAtLogFile(path));
  if (!file.exists) {
    if (!options.create) return NoLog(path);
    RETURN_IF_ERROR(CreateLog(path));
    created = true;
  }
  RETURN_IF_ERROR(lock->LockLogFile(path));
  if (file.exists) RETURN_IF_ERROR(CheckVersion(path, file).status());
  ASSIGN_OR_RETURN(std::unique_ptr<Connection> writer, OpenWriter(path));
  ASSIGN_OR_RETURN(std::string log_id, ReadLogId(*writer));
  SqliteUpkeep::RemoveStaleScratch(path);
  std::move(discard).Cancel();
  return std::make_unique<SqliteTuningLog>(path, std::move(log_id),
                                           std::move(lock), std::move(writer),
                                           Connection::Mode::kReadOnly, limits);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TuningLog>> OpenSqliteLog(
    const std::string& path, const OpenOptions& options) {
  return OpenSqliteLog(path, options, WalLimits());
}

absl::StatusOr<std::unique_ptr<TuningLog>> OpenSqliteLog(
    const std::string& path, const OpenOptions& options, WalLimits limits) {
  ASSIGN_OR_RETURN(const std::string resolved,
                   ResolveLogPath(path, !options.read_only));
  return options.read_only ? OpenToLook(resolved)
                           : OpenToWrite(resolved, options, limits);
}

}  // namespace regatta::sqlite
