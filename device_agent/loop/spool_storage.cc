#include "device_agent/loop/spool_storage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/sync_path.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace regatta {
namespace {

absl::Status FileError(std::string_view what, const std::string& path) {
  const int error = errno;
  std::string message = absl::StrCat("cannot ", std::string(what), " ", path,
                                     ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(message);
  }
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError(message);
  }
  return absl::InternalError(message);
}

absl::Status Write(int fd, std::string_view bytes, const std::string& path) {
  errno = WriteAll(fd, bytes);
  return errno == 0 ? absl::OkStatus() : FileError("write", path);
}

// A rename is durable only when the folder is.
absl::Status SyncTheFolderOf(const std::string& path) {
  errno = SyncFolderOf(path);
  return errno == 0 ? absl::OkStatus() : FileError("sync the folder of", path);
}

class DiskSpoolStorage : public SpoolStorage {
 public:
  DiskSpoolStorage(std::string path, UniqueFd file, UniqueFd lock)
      : path_(std::move(path)),
        file_(std::move(file)),
        lock_(std::move(lock)) {}

  absl::StatusOr<int64_t> Size() override {
    struct stat info;
    if (fstat(file_.get(), &info) != 0) return FileError("stat", path_);
    return static_cast<int64_t>(info.st_size);
  }

  absl::StatusOr<std::string> Read(int64_t offset, int64_t size) override {
    std::string bytes(static_cast<size_t>(size), '\0');
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n =
          pread(file_.get(), bytes.data() + done, bytes.size() - done,
                offset + static_cast<int64_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return FileError("read", path_);
      if (n == 0) {
        return absl::OutOfRangeError(
            absl::StrCat(path_, " ends before byte ", offset + size));
      }
      done += static_cast<size_t>(n);
    }
    return bytes;
  }

  absl::Status Append(std::string_view bytes) override {
    return Write(file_.get(), bytes, path_);
  }

  absl::Status Sync() override {
    if (fdatasync(file_.get()) != 0) return FileError("sync", path_);
    if (folder_dirty_) {
      RETURN_IF_ERROR(SyncTheFolderOf(path_));
      folder_dirty_ = false;
    }
    return absl::OkStatus();
  }

  absl::Status Truncate(int64_t size) override {
    if (ftruncate(file_.get(), size) != 0) return FileError("truncate", path_);
    return absl::OkStatus();
  }

  absl::Status Keep(std::string_view head,
                    const std::vector<Range>& ranges) override {
    const std::string temporary = absl::StrCat(path_, ".new");
    UniqueFd fresh(open(temporary.c_str(),
                        O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
                        0600));
    if (fresh.get() < 0) return FileError("create", temporary);
    RETURN_IF_ERROR(Write(fresh.get(), head, temporary));
    for (const Range& range : ranges) {
      constexpr int64_t kPiece = 1 << 20;
      for (int64_t done = 0; done < range.size; done += kPiece) {
        ASSIGN_OR_RETURN(
            const std::string piece,
            Read(range.offset + done, std::min(kPiece, range.size - done)));
        RETURN_IF_ERROR(Write(fresh.get(), piece, temporary));
      }
    }
    if (fdatasync(fresh.get()) != 0) return FileError("sync", temporary);
    if (rename(temporary.c_str(), path_.c_str()) != 0) {
      return FileError("rename to", path_);
    }
    file_ = std::move(fresh);
    // From here on the new file is the file. Until the rename is durable, the
    // old one, which holds the same results, may come back: no harm before the
    // next Sync, which therefore tries again.
    folder_dirty_ = !SyncTheFolderOf(path_).ok();
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  UniqueFd file_;
  UniqueFd lock_;
  bool folder_dirty_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SpoolStorage>> OpenSpoolFile(
    const std::string& path) {
  // The lock has a file of its own, because Keep replaces the data file.
  const std::string lock_path = absl::StrCat(path, ".lock");
  UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.get() < 0) return FileError("create", lock_path);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return absl::FailedPreconditionError(absl::StrCat(
          path,
          " is in use by another agent; give each agent its own --state"));
    }
    return FileError("lock", lock_path);
  }
  UniqueFd file(
      open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (file.get() < 0) return FileError("open", path);
  RETURN_IF_ERROR(SyncTheFolderOf(path));
  return std::make_unique<DiskSpoolStorage>(path, std::move(file),
                                            std::move(lock));
}

}  // namespace regatta
