#include "storage/sqlite/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/sqlite/sqlite_status.h"

namespace regatta::sqlite {
namespace {

constexpr size_t kMaxNoteBytes = 400;

int Flock(int fd, int operation) {
  int result;
  do {
    result = flock(fd, operation);
  } while (result != 0 && errno == EINTR);
  return result;
}

// The file behind `fd` is still the one at `path`: it may have been removed by
// its holder between our opening and locking it.
bool IsStillThere(int fd, const std::string& path) {
  struct stat ours = {}, theirs = {};
  return fstat(fd, &ours) == 0 && stat(path.c_str(), &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

// Whoever may read the log may hold it.
mode_t ModeOfLock(const std::string& log_path) {
  struct stat log = {};
  if (stat(log_path.c_str(), &log) != 0) return 0600;
  return 0600 | (log.st_mode & 0044);
}

std::string ReadNote(int fd) {
  char note[kMaxNoteBytes];
  const ssize_t size = pread(fd, note, sizeof(note), 0);
  std::string text(note, std::max<ssize_t>(size, 0));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

absl::Status Held(int fd, const std::string& log_path) {
  // A shared lock can be had beside readers, but not beside a writer.
  const bool readers = Flock(fd, LOCK_SH | LOCK_NB) == 0;
  std::string who = "processes that read it; wait until they are done";
  if (!readers) {
    who = ReadNote(fd);
    if (who.empty()) who = "another process";
    absl::StrAppend(&who, "; ask that one, or stop it first");
  }
  return absl::FailedPreconditionError(
      absl::StrCat(log_path, ": the tuning log is held by ", who));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileLock>> FileLock::Exclusive(
    const std::string& log_path, const std::string& holder) {
  const std::string path = absl::StrCat(log_path, ".lock");
  while (true) {
    int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                  ModeOfLock(log_path));
    const bool made = fd >= 0;
    if (fd < 0 && errno == EEXIST) fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) continue;  // removed in between
    if (fd < 0) return SystemStatus(errno, "create or open", path);
    std::unique_ptr<FileLock> lock(new FileLock(fd, path, true, made));
    if (Flock(fd, LOCK_EX | LOCK_NB) != 0) {
      lock->exclusive_ = false;  // the note in it is not ours
      if (errno != EWOULDBLOCK) return SystemStatus(errno, "lock", path);
      return Held(fd, log_path);
    }
    if (!IsStillThere(fd, path)) continue;
    lock->NameHolder(holder);
    return lock;
  }
}

absl::StatusOr<std::unique_ptr<FileLock>> FileLock::Shared(
    const std::string& log_path) {
  const std::string path = absl::StrCat(log_path, ".lock");
  while (true) {
    int fd = open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                  ModeOfLock(log_path));
    const bool made = fd >= 0;
    int error = made ? 0 : errno;
    const bool cannot_make = error == EACCES || error == EROFS;
    if (error == EEXIST || cannot_make) {
      fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
      error = fd >= 0 ? 0 : errno;
      if (error == ENOENT && !cannot_make) continue;  // removed in between
    }
    if (error != 0 && !(error == ENOENT && cannot_make)) {
      return SystemStatus(error, "create or open", path);
    }
    std::unique_ptr<FileLock> lock(new FileLock(fd, path, false, made));
    if (fd < 0) return lock;
    if (Flock(fd, LOCK_SH | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return SystemStatus(errno, "lock", path);
      return Held(fd, log_path);
    }
    if (IsStillThere(fd, path)) return lock;
  }
}

absl::Status FileLock::LockLogFile(const std::string& log_path) {
  CHECK(log_fd_ < 0) << log_path << ": locked twice";
  log_fd_ = open(log_path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (log_fd_ < 0) return SystemStatus(errno, "open", log_path);
  const int operation = exclusive_ ? LOCK_EX : LOCK_SH;
  if (Flock(log_fd_, operation | LOCK_NB) == 0) return absl::OkStatus();
  if (errno != EWOULDBLOCK) return SystemStatus(errno, "lock", log_path);
  struct stat info = {};
  fstat(log_fd_, &info);
  return absl::FailedPreconditionError(absl::StrCat(
      log_path, ": the tuning log is held by another process, which opened it ",
      "by another name (the file has ", info.st_nlink, " names",
      "); ask that one, or stop it first"));
}

FileLock::~FileLock() {
  if (log_fd_ >= 0) close(log_fd_);
  if (fd_ < 0) return;
  // Nobody holds it any more: the note goes first.
  if (exclusive_ && ftruncate(fd_, 0) != 0) {
  }
  // Who only looks leaves nothing behind, unless others look still: they hold
  // this very file.
  if (!exclusive_ && made_ && Flock(fd_, LOCK_EX | LOCK_NB) == 0 &&
      IsStillThere(fd_, path_)) {
    unlink(path_.c_str());
  }
  close(fd_);
}

void FileLock::NameHolder(const std::string& holder) {
  if (!exclusive_) return;
  const std::string note =
      absl::StrCat("process ", getpid(),
                   holder.empty() ? "" : absl::StrCat(" (", holder, ")"))
          .substr(0, kMaxNoteBytes);
  // Only a courtesy to whoever comes second: a full disk is no reason to refuse
  // here.
  if (ftruncate(fd_, 0) != 0 || pwrite(fd_, note.data(), note.size(), 0) < 0) {
  }
}

void FileLock::Discard() {
  if (made_) unlink(path_.c_str());
}

}  // namespace regatta::sqlite
