#include "device_agent/loop/spool_storage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/replace_file.h"
#include "base/status_macros.h"
#include "base/sync_path.h"
#include "base/system_error.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace regatta {
namespace {

// Keep writes here; what a crash left of it is of no use.
std::string BesideOf(const std::string& path) {
  return absl::StrCat(path, ".new");
}

// A rename is durable only when the folder is.
absl::Status SyncTheFolderOf(const std::string& path) {
  const int error = SyncFolderOf(path);
  return error == 0 ? absl::OkStatus()
                    : FileError(path, "sync the folder of", error);
}

class DiskSpoolStorage : public SpoolStorage {
 public:
  DiskSpoolStorage(std::string path, UniqueFd file, UniqueFd lock)
      : path_(std::move(path)),
        file_(std::move(file)),
        lock_(std::move(lock)) {}

  absl::StatusOr<int64_t> Size() override {
    struct stat info;
    if (fstat(file_.get(), &info) != 0) return FileError(path_, "stat", errno);
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
      if (n < 0) return FileError(path_, "read", errno);
      if (n == 0) {
        return absl::OutOfRangeError(
            absl::StrCat(path_, " ends before byte ", offset + size));
      }
      done += static_cast<size_t>(n);
    }
    return bytes;
  }

  absl::Status Append(std::string_view bytes) override {
    const int error = WriteAll(file_.get(), bytes);
    return error == 0 ? absl::OkStatus() : FileError(path_, "write", error);
  }

  absl::Status Sync() override {
    if (fdatasync(file_.get()) != 0) {
      return FileError(path_, "sync", errno);
    }
    if (folder_dirty_) {
      RETURN_IF_ERROR(SyncTheFolderOf(path_));
      folder_dirty_ = false;
    }
    return absl::OkStatus();
  }

  absl::Status Truncate(int64_t size) override {
    if (ftruncate(file_.get(), size) != 0) {
      return FileError(path_, "truncate", errno);
    }
    return absl::OkStatus();
  }

  absl::Status Keep(std::string_view head,
                    const std::vector<Range>& ranges) override {
    const std::string beside = BesideOf(path_);
    FileBeside fresh(path_, beside);
    int error = fresh.Open(0600);
    if (error == 0) error = fresh.Append(head);
    for (const Range& range : ranges) {
      constexpr int64_t kPiece = 1 << 20;
      for (int64_t done = 0; done < range.size && error == 0; done += kPiece) {
        ASSIGN_OR_RETURN(
            const std::string piece,
            Read(range.offset + done, std::min(kPiece, range.size - done)));
        error = fresh.Append(piece);
      }
    }
    if (error == 0) error = fresh.Sync();
    if (error == 0) error = fresh.Commit();
    if (error != 0) return FileError(beside, "write", error);
    file_ = fresh.Take();
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
  if (lock.get() < 0) return FileError(lock_path, "create", errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return absl::FailedPreconditionError(absl::StrCat(
          path,
          " is in use by another agent; give each agent its own --state"));
    }
    return FileError(lock_path, "lock", errno);
  }
  unlink(BesideOf(path).c_str());
  UniqueFd file(
      open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (file.get() < 0) return FileError(path, "open", errno);
  RETURN_IF_ERROR(SyncTheFolderOf(path));
  return std::make_unique<DiskSpoolStorage>(path, std::move(file),
                                            std::move(lock));
}

}  // namespace regatta
