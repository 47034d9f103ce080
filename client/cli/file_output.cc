#include "client/cli/file_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/sync_path.h"
#include "base/unique_fd.h"
#include "storage/sqlite/log_file.h"

namespace regatta::cli {
namespace {

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
}

// PATH.PID.new: "PID" is digits.
bool IsStagedFor(const std::string& file_name, std::string_view name) {
  const std::string begin = file_name + ".";
  constexpr std::string_view kEnd = ".new";
  if (name.size() <= begin.size() + kEnd.size() ||
      name.substr(0, begin.size()) != begin ||
      name.substr(name.size() - kEnd.size()) != kEnd) {
    return false;
  }
  name.remove_prefix(begin.size());
  name.remove_suffix(kEnd.size());
  return std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

// Whoever writes it holds a lock on it, wherever they run; the kernel's lock
// goes with the process. A process id says less: it may be another's by now.
bool IsLeftBehind(const std::string& path) {
  const UniqueFd file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info = {};
  return file.valid() && fstat(file.get(), &info) == 0 &&
         S_ISREG(info.st_mode) && flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

// Removes what processes that were killed left of the same file.
void RemoveStale(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path file(path);
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  // What cannot be removed only takes room: no reason to refuse the file.
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end;
       !ignored && entry != end; entry.increment(ignored)) {
    const std::string stale = entry->path().string();
    if (!IsStagedFor(file.filename().string(),
                     entry->path().filename().string()) ||
        !IsLeftBehind(stale)) {
      continue;
    }
    unlink(stale.c_str());
    // Of a copy of a log that was being looked at.
    unlink((stale + ".lock").c_str());
  }
}

}  // namespace

absl::StatusOr<StagedFile> StagedFile::Create(const std::string& path,
                                              FileUse use) {
  struct stat there = {};
  const bool is_there = stat(path.c_str(), &there) == 0;
  if (is_there && !S_ISREG(there.st_mode)) {
    return CannotWrite(path, S_ISDIR(there.st_mode) ? EISDIR : EEXIST);
  }
  RemoveStale(path);
  mode_t mode = use == FileUse::kProgram ? 0755 : 0644;
  if (use == FileUse::kPrivate) mode = is_there ? there.st_mode & 0777 : 0600;
  while (true) {
    StagedFile staged(path, absl::StrCat(path, ".", getpid(), ".new"));
    const int error =
        staged.file_->Open(mode, /*masked=*/use != FileUse::kPrivate);
    if (error != 0) return CannotWrite(path, error);
    // Shared, so that it can be looked at. Where there are no such locks nobody
    // takes it for left behind either.
    (void)flock(staged.file_->fd(), LOCK_SH);
    // Another one may have taken it for left behind before it was locked.
    struct stat ours = {};
    if (fstat(staged.file_->fd(), &ours) != 0 || ours.st_nlink > 0) {
      return staged;
    }
  }
}

absl::StatusOr<StagedFile> StagedFile::Write(const std::string& path,
                                             std::string_view bytes,
                                             FileUse use) {
  ASSIGN_OR_RETURN(StagedFile file, Create(path, use));
  RETURN_IF_ERROR(file.Append(bytes));
  RETURN_IF_ERROR(file.Sync());
  return file;
}

absl::Status StagedFile::Append(std::string_view bytes) {
  const int error = file_->Append(bytes);
  return error == 0 ? absl::OkStatus() : CannotWrite(path_, error);
}

absl::Status StagedFile::Sync() {
  const int error = file_->Sync();
  return error == 0 ? absl::OkStatus() : CannotWrite(path_, error);
}

absl::Status StagedFile::Commit() {
  RETURN_IF_ERROR(Sync());
  int error = file_->Commit();
  if (error == 0) error = SyncFolderOf(path_);
  return error == 0 ? absl::OkStatus() : CannotWrite(path_, error);
}

bool IsSameFile(const std::string& path, const std::string& other) {
  struct stat one, two;
  return stat(path.c_str(), &one) == 0 && stat(other.c_str(), &two) == 0 &&
         one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

absl::Status CheckOutput(const std::string& path,
                         const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    if (IsSameFile(path, input)) {
      return absl::FailedPreconditionError(absl::StrCat(
          path, " is ", input, " itself, which is read; name another file"));
    }
  }
  if (const auto log = sqlite::DatabaseAt(path)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, *log == path ? " is" : absl::StrCat(" belongs to ", *log, ","),
        " a tuning log, which is not replaced; name another file"));
  }
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view bytes, FileUse use) {
  ASSIGN_OR_RETURN(StagedFile file, StagedFile::Write(path, bytes, use));
  return file.Commit();
}

}  // namespace regatta::cli
