#include "storage/sqlite/log_place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/log_file.h"
#include "storage/sqlite/looking.h"
#include "storage/sqlite/sqlite_status.h"

namespace regatta::sqlite {
namespace {

constexpr const char* kLeftovers[] = {"-wal", "-shm", "-journal"};

bool IsThere(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogPlace>> LogPlace::Hold(
    const std::string& path) {
  const auto resolved = ResolveLogPath(path, /*write=*/false);
  if (!resolved.ok()) {
    return absl::FailedPreconditionError(resolved.status().message());
  }
  ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock,
                   FileLock::Exclusive(*resolved, "replacing it"));
  // Also reached by another name.
  if (access(resolved->c_str(), R_OK) == 0) {
    if (absl::Status held = lock->LockLogFile(*resolved); !held.ok()) {
      lock->Discard();
      return held;
    }
  }
  return std::unique_ptr<LogPlace>(new LogPlace(*resolved, std::move(lock)));
}

LogPlace::~LogPlace() { lock_->Discard(); }

std::optional<std::string> LogPlace::Occupied() const {
  if (IsThere(path_)) return path_;
  for (const char* suffix : kLeftovers) {
    const std::string file = absl::StrCat(path_, suffix);
    if (IsThere(file)) return file;
  }
  return std::nullopt;
}

std::optional<std::string> LogPlace::Contents() const {
  const auto occupied = Occupied();
  if (!occupied) return std::nullopt;
  const auto file = LookAtLogFile(path_);
  if (!file.ok()) return "what is there is no tuning log, or a damaged one";
  if (!file->exists) {
    if (*occupied == path_) return std::nullopt;
    return absl::StrCat(*occupied, " is there");
  }
  auto db = Connection::Open(path_, LookingMode(*file));
  if (!db.ok()) return "what is there cannot be read";
  const auto records = (*db)->Number("SELECT count(*) FROM record");
  const auto jobs = (*db)->Number("SELECT count(*) FROM job");
  if (!records.ok() || !jobs.ok()) {
    return "what is there is no tuning log, or a damaged one";
  }
  if (*records == 0 && *jobs == 0) return std::nullopt;
  return absl::StrCat("the tuning log there holds ", *records,
                      " record(s) and ", *jobs, " job(s)");
}

void LogPlace::FoldWriteAheadLog() {
  const auto file = LookAtLogFile(path_);
  if (!file.ok() || !file->exists || !file->has_wal) return;
  const auto db = Connection::Open(path_, Connection::Mode::kReadWrite);
  if (!db.ok()) return;
  (*db)->Number("PRAGMA wal_checkpoint(TRUNCATE)").IgnoreError();
}

absl::Status LogPlace::Replace(const std::function<absl::Status()>& put) {
  std::vector<std::pair<std::string, std::string>> moved;  // from, to
  absl::Cleanup put_back = [&moved] {
    for (const auto& [from, to] : moved) rename(to.c_str(), from.c_str());
  };
  for (const char* suffix : kLeftovers) {
    const std::string from = absl::StrCat(path_, suffix);
    if (!IsThere(from)) continue;
    const std::string to = absl::StrCat(from, ".replaced.", getpid());
    if (rename(from.c_str(), to.c_str()) != 0) {
      return SystemStatus(errno, "move away", from);
    }
    moved.emplace_back(from, to);
  }
  RETURN_IF_ERROR(put());
  std::move(put_back).Cancel();
  for (const auto& [from, to] : moved) unlink(to.c_str());
  return absl::OkStatus();
}

}  // namespace regatta::sqlite
