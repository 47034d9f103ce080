#include "storage/sqlite/restore.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/sync_path.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/file_lock.h"
#include "storage/sqlite/job_store.h"
#include "storage/sqlite/log_file.h"
#include "storage/sqlite/log_place.h"
#include "storage/sqlite/looking.h"
#include "storage/sqlite/sqlite_status.h"
#include "storage/tuning_log.h"

namespace regatta::sqlite {
namespace {

// The backup's bytes, as of one moment, to `fresh`.
absl::Status CopyBackup(const std::string& backup, const std::string& fresh,
                        const UpkeepProgress& progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock,
                   FileLock::Shared(backup));
  ASSIGN_OR_RETURN(const LogFile file, LookAtLogFile(backup));
  if (!file.exists) {
    return absl::NotFoundError(absl::StrCat(
        backup, access(backup.c_str(), F_OK) == 0 ? ": is empty, so no backup"
                                                  : ": no such backup"));
  }
  RETURN_IF_ERROR(lock->LockLogFile(backup));
  RETURN_IF_ERROR(CheckIndex(backup, file));
  ASSIGN_OR_RETURN(const std::unique_ptr<Connection> db,
                   Connection::Open(backup, LookingMode(file)));
  return db->CopyTo(fresh, [&](int64_t done, int64_t total) {
    return !progress || progress("copying pages", done, total);
  });
}

// Opens the copy as a server would, which brings an older layout up to date,
// and reads all of it.
absl::StatusOr<Restored> CheckCopy(const std::string& fresh,
                                   const std::string& backup,
                                   const RestoreOptions& options) {
  OpenOptions open;
  open.create = false;
  open.holder = "restoring it";
  auto log = OpenTuningLog(absl::StrCat("sqlite:", fresh), open);
  if (!log.ok()) {
    return absl::Status(log.status().code(),
                        absl::StrCat("the backup ", backup, " cannot be used: ",
                                     log.status().message()));
  }
  ASSIGN_OR_RETURN(const LogCheck check, (*log)->upkeep().Check(
                                             [&](const LogFinding& found) {
                                               if (options.finding)
                                                 options.finding(found);
                                             },
                                             options.progress));
  if (check.damage > 0) {
    return absl::DataLossError(
        absl::StrCat("the backup ", backup, " is not whole: ", check.damage,
                     " finding(s) in ", check.records, " record(s)"));
  }
  if (check.derived > 0) {
    RETURN_IF_ERROR((*log)->RebuildBest(options.progress).status());
  }
  ASSIGN_OR_RETURN(const auto jobs, (*log)->ListJobs());
  Restored restored;
  restored.records = check.records;
  restored.jobs = static_cast<int64_t>(jobs.size());
  return restored;
}

absl::Status SkipNumbers(const std::string& fresh) {
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<Connection> db,
                     Connection::Open(fresh, Connection::Mode::kReadWrite));
    RETURN_IF_ERROR(SkipHandedOut(*db, kSkippedJobs, kSkippedOrdinals));
  }
  // Closing moved everything to the file that is renamed.
  ASSIGN_OR_RETURN(const LogFile file, LookAtLogFile(fresh));
  if (!file.has_wal) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      fresh, ": its write-ahead log could not be closed; try again"));
}

void RemoveCopy(const std::string& fresh) {
  RemoveLogFiles(fresh);
  unlink(absl::StrCat(fresh, ".lock").c_str());
}

// As what was there, or as its folder.
absl::Status TakeOver(const std::string& fresh, const std::string& path) {
  struct stat old = {};
  const bool is_there = stat(path.c_str(), &old) == 0;
  const std::string folder = std::filesystem::path(path).parent_path();
  if (!is_there && stat(folder.c_str(), &old) != 0) {
    return SystemStatus(errno, "look into", folder);
  }
  // Only root may give files away; others make files of their own.
  if (geteuid() == 0 && chown(fresh.c_str(), old.st_uid, old.st_gid) != 0) {
    return SystemStatus(errno, "set the owner of", fresh);
  }
  if (is_there && chmod(fresh.c_str(), old.st_mode & 0777) != 0) {
    return SystemStatus(errno, "set the mode of", fresh);
  }
  const int error = SyncPath(fresh);
  return error == 0 ? absl::OkStatus() : SystemStatus(error, "sync", fresh);
}

absl::Status MayReplace(const LogPlace& place, bool replace) {
  const auto contents = place.Contents();
  if (!contents || replace) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      place.path(), ": ", *contents, "; --force replaces it for good"));
}

}  // namespace

absl::StatusOr<Restored> RestoreLog(const std::string& backup,
                                    const std::string& path,
                                    const RestoreOptions& options) {
  ASSIGN_OR_RETURN(const std::string from,
                   ResolveLogPath(backup, /*write=*/false));
  ASSIGN_OR_RETURN(const std::string to, ResolveLogPath(path, /*write=*/true));
  std::error_code none;
  if (std::filesystem::equivalent(from, to, none)) {
    return absl::FailedPreconditionError(
        absl::StrCat(from, " is the log itself; name a backup of it"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<LogPlace> place, LogPlace::Hold(to));
  RETURN_IF_ERROR(MayReplace(*place, options.replace));
  const std::string fresh = absl::StrCat(to, ".restore");
  RemoveCopy(fresh);  // of a restore that was killed; the place is ours
  const absl::Cleanup cleanup = [&fresh] { RemoveCopy(fresh); };
  RETURN_IF_ERROR(CopyBackup(from, fresh, options.progress));
  ASSIGN_OR_RETURN(Restored restored, CheckCopy(fresh, from, options));
  RETURN_IF_ERROR(SkipNumbers(fresh));
  RETURN_IF_ERROR(TakeOver(fresh, to));
  // From here on, being killed leaves one of the two whole.
  place->FoldWriteAheadLog();
  RETURN_IF_ERROR(place->Replace([&]() -> absl::Status {
    if (rename(fresh.c_str(), to.c_str()) != 0) {
      return SystemStatus(errno, "replace", to);
    }
    const int error = SyncFolderOf(to);
    return error == 0 ? absl::OkStatus()
                      : SystemStatus(error, "sync the folder of", to);
  }));
  restored.path = to;
  struct stat info = {};
  if (stat(to.c_str(), &info) == 0) restored.bytes = info.st_size;
  return restored;
}

}  // namespace regatta::sqlite
