#include "storage/sqlite/page_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/sync_path.h"
#include "storage/sqlite/sqlite_status.h"

namespace regatta::sqlite {
namespace {

// Pages between two reports: 4 MiB or so.
constexpr int kStepPages = 1024;

}  // namespace

absl::StatusOr<std::unique_ptr<PageCopy>> PageCopy::Make(
    const std::string& path) {
  // SQLite takes a file that is there; this must be a new one.
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return SystemStatus(errno, "create", path);
  close(fd);
  std::unique_ptr<PageCopy> copy(new PageCopy(path));
  RETURN_IF_ERROR(copy->Open());
  return copy;
}

absl::Status PageCopy::Open() {
  int code =
      sqlite3_open_v2(path_.c_str(), &to_, SQLITE_OPEN_READWRITE, nullptr);
  if (code != SQLITE_OK) return Error(code);
  // It is whole at the end or of no use: no journal, one sync.
  code =
      sqlite3_exec(to_, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF",
                   nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

PageCopy::~PageCopy() {
  CHECK(backup_ == nullptr) << path_ << ": a copy that was not ended";
  sqlite3_close(to_);
  if (!kept_) unlink(path_.c_str());
}

absl::Status PageCopy::Begin(Connection& from) {
  backup_ = sqlite3_backup_init(to_, "main", from.db_, "main");
  return backup_ != nullptr ? absl::OkStatus() : Error(sqlite3_errcode(to_));
}

absl::StatusOr<bool> PageCopy::Step(int pages) {
  const int code = sqlite3_backup_step(backup_, pages);
  total_ = sqlite3_backup_pagecount(backup_);
  done_ = total_ - sqlite3_backup_remaining(backup_);
  if (code == SQLITE_OK) return false;
  const absl::Status end = End();
  if (code != SQLITE_DONE) return Error(code);
  RETURN_IF_ERROR(end);
  return true;
}

absl::Status PageCopy::End() {
  if (backup_ == nullptr) return absl::OkStatus();
  const int code = sqlite3_backup_finish(std::exchange(backup_, nullptr));
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::Status PageCopy::Keep() {
  const int code = sqlite3_close(to_);
  if (code != SQLITE_OK) return Error(code);
  to_ = nullptr;
  if (const int error = SyncPath(path_); error != 0) {
    return SystemStatus(error, "sync", path_);
  }
  kept_ = true;
  return absl::OkStatus();
}

absl::Status PageCopy::Error(int code) const {
  return SqliteStatus(code, sqlite3_system_errno(to_), sqlite3_errmsg(to_),
                      path_);
}

absl::Status Connection::CopyTo(
    const std::string& path,
    const std::function<bool(int64_t done, int64_t total)>& progress) {
  // Holds one state of the log while its pages are copied: without it the copy
  // would begin anew with every commit of another connection.
  ASSIGN_OR_RETURN(const ReadTransaction snapshot,
                   ReadTransaction::Begin(*this));
  RETURN_IF_ERROR(Number("SELECT count(*) FROM meta").status());
  ASSIGN_OR_RETURN(const std::unique_ptr<PageCopy> copy, PageCopy::Make(path));
  RETURN_IF_ERROR(copy->Begin(*this));
  const absl::Cleanup end = [&copy] { copy->End().IgnoreError(); };
  bool all = false;
  while (!all) {
    ASSIGN_OR_RETURN(all, copy->Step(kStepPages));
    if (progress && !progress(copy->done(), copy->total())) {
      return absl::CancelledError("the copy was stopped");
    }
    if (!all && asked()) return Asked();
  }
  return copy->Keep();
}

}  // namespace regatta::sqlite
