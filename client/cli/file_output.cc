#include "client/cli/file_output.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/sync_path.h"
#include "base/write_all.h"
#include "storage/sqlite/log_file.h"

namespace regatta::cli {
namespace {

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
}

// Removes what processes that were killed left of the same file.
void RemoveStale(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path file(path);
  const std::string begin = file.filename().string() + ".";
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  // What cannot be removed only takes room: no reason to refuse the file.
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end;
       !ignored && entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    constexpr std::string_view kEnd = ".new";
    if (!absl::StartsWith(name, begin) || !absl::EndsWith(name, ToAbsl(kEnd)) ||
        name.size() <= begin.size() + kEnd.size()) {
      continue;
    }
    pid_t pid = 0;
    if (absl::SimpleAtoi(
            name.substr(begin.size(), name.size() - begin.size() - kEnd.size()),
            &pid) &&
        pid > 0 && kill(pid, 0) != 0 && errno == ESRCH) {
      std::error_code unsaid;
      fs::remove(entry->path(), unsaid);
    }
  }
}

}  // namespace

absl::StatusOr<StagedFile> StagedFile::Create(const std::string& path,
                                              bool executable) {
  struct stat there;
  if (stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return CannotWrite(path, S_ISDIR(there.st_mode) ? EISDIR : EEXIST);
  }
  RemoveStale(path);
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".new");
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
           executable ? 0755 : 0644);
  if (fd < 0) return CannotWrite(path, errno);
  return StagedFile(path, temporary, fd);
}

absl::StatusOr<StagedFile> StagedFile::Write(const std::string& path,
                                             std::string_view bytes,
                                             bool executable) {
  ASSIGN_OR_RETURN(StagedFile file, Create(path, executable));
  RETURN_IF_ERROR(file.Append(bytes));
  RETURN_IF_ERROR(file.Close());
  return file;
}

absl::Status StagedFile::Append(std::string_view bytes) {
  const int error = WriteAll(fd_, bytes);
  return error == 0 ? absl::OkStatus() : CannotWrite(path_, error);
}

absl::Status StagedFile::Close() {
  if (fd_ < 0) return absl::OkStatus();
  int error = fsync(fd_) == 0 ? 0 : errno;
  if (close(std::exchange(fd_, -1)) != 0 && error == 0) error = errno;
  return error == 0 ? absl::OkStatus() : CannotWrite(path_, error);
}

StagedFile::~StagedFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status StagedFile::Commit() {
  RETURN_IF_ERROR(Close());
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return CannotWrite(path_, errno);
  }
  temporary_.clear();
  const int error = SyncFolderOf(path_);
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
                                 std::string_view bytes, bool executable) {
  ASSIGN_OR_RETURN(StagedFile file, StagedFile::Write(path, bytes, executable));
  return file.Commit();
}

}  // namespace regatta::cli
