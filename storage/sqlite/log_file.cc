#include "storage/sqlite/log_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "storage/sqlite/sqlite_status.h"

namespace regatta::sqlite {
namespace {

// The first 16 bytes of every SQLite database, the final 0 included.
constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr size_t kHeaderBytes = 100;

uint32_t BigEndian(std::string_view bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

// The file's size by its header (sqlite.org/fileformat.html, 1.3), once known
// to be an SQLite database. SQLite itself takes a file of less than a page for
// an empty one.
int64_t BytesByHeader(std::string_view header) {
  if (header.size() < kHeaderBytes) return kHeaderBytes;
  const uint32_t page = BigEndian(header, 16, 2);
  const int64_t page_bytes = page == 1 ? 65536 : page;
  // The page count counts only when these two agree.
  const bool valid = BigEndian(header, 24, 4) == BigEndian(header, 92, 4);
  return page_bytes * (valid ? BigEndian(header, 28, 4) : 1);
}

bool MayAccess(const std::string& path, int mode) {
  return faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

absl::Status CheckFolder(const std::string& folder, bool write) {
  struct stat info = {};
  if (stat(folder.c_str(), &info) != 0) {
    if (errno == ENOENT) {
      return absl::NotFoundError(
          absl::StrCat(folder, ": no such folder; make it or name another"));
    }
    return SystemStatus(errno, "look into", folder);
  }
  if (!S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": not a folder"));
  }
  if (!MayAccess(folder, write ? W_OK | X_OK : X_OK)) {
    return SystemStatus(errno, write ? "write into" : "enter", folder);
  }
  struct statfs system = {};
  if (statfs(folder.c_str(), &system) == 0 &&
      IsNetworkFileSystem(static_cast<int64_t>(system.f_type))) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, ": is on a network file system (type 0x",
        absl::Hex(static_cast<uint64_t>(system.f_type)),
        "), where a tuning log is not safe; put it on a local disk"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsNetworkFileSystem(int64_t type) {
  switch (static_cast<uint32_t>(type)) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
    case CODA_SUPER_MAGIC:
    case V9FS_MAGIC:
    case CEPH_SUPER_MAGIC:
    case 0x0BD00BD0:  // Lustre
    case 0x47504653:  // GPFS
      return true;
    default:
      return false;
  }
}

absl::StatusOr<std::string> ResolveLogPath(const std::string& path,
                                           bool write) {
  if (path.empty()) {
    return absl::InvalidArgumentError("the tuning log's path is empty");
  }
  std::error_code error;
  const std::filesystem::path given(path);
  if (!given.has_filename()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": names a folder, not a file"));
  }
  const std::filesystem::path parent =
      given.has_parent_path() ? given.parent_path() : ".";
  struct stat info = {};
  std::string resolved;
  if (stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": is a folder; name a file in it"));
    }
    if (!S_ISREG(info.st_mode)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": is not a regular file"));
    }
    resolved = std::filesystem::canonical(given, error).string();
    if (error) return SystemStatus(error.value(), "resolve", path);
    if (!MayAccess(resolved, write ? R_OK | W_OK : R_OK)) {
      return SystemStatus(errno, write ? "read and write" : "read", path);
    }
  } else if (errno == ENOENT) {
    RETURN_IF_ERROR(CheckFolder(parent.string(), write));
    const auto folder = std::filesystem::canonical(parent, error);
    if (error) return SystemStatus(error.value(), "resolve", path);
    resolved = (folder / given.filename()).string();
  } else {
    return SystemStatus(errno, "look at", path);
  }
  RETURN_IF_ERROR(CheckFolder(
      std::filesystem::path(resolved).parent_path().string(), write));
  return resolved;
}

std::optional<std::string> DatabaseAt(const std::string& path) {
  std::vector<std::string> candidates = {path};
  for (const char* suffix : {"-wal", "-shm", "-journal", ".lock"}) {
    if (absl::EndsWith(path, suffix)) {
      candidates.push_back(path.substr(0, path.size() - strlen(suffix)));
    }
  }
  for (const std::string& candidate : candidates) {
    const UniqueFd file(
        open(candidate.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    char bytes[kMagic.size()];
    if (pread(file.get(), bytes, sizeof(bytes), 0) == sizeof(bytes) &&
        std::string_view(bytes, sizeof(bytes)) == kMagic) {
      return candidate;
    }
  }
  return std::nullopt;
}

absl::StatusOr<LogFile> LookAtLogFile(const std::string& path) {
  LogFile file;
  struct stat info = {};
  if (stat(absl::StrCat(path, "-wal").c_str(), &info) == 0) {
    file.has_wal = info.st_size > 0;
  }
  if (stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return SystemStatus(errno, "look at", path);
    info.st_size = 0;
  }
  file.exists = info.st_size > 0;
  if (!file.exists) {
    if (!file.has_wal) return file;
    return absl::DataLossError(
        absl::StrCat(path, ": is missing or empty, yet ", path,
                     "-wal has contents; restore the file, or move both away"));
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemStatus(errno, "open", path);
  char bytes[kHeaderBytes];
  const ssize_t size = pread(fd, bytes, sizeof(bytes), 0);
  const int error = errno;
  close(fd);
  if (size < 0) return SystemStatus(error, "read", path);
  const std::string_view header(bytes, size);
  if (header.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError(
        absl::StrCat(path,
                     ": is not a tuning log: it does not begin as an SQLite "
                     "database; restore a backup or name another file"));
  }
  // With a write-ahead log the end may be there still.
  if (!file.has_wal && info.st_size < BytesByHeader(header)) {
    return absl::DataLossError(
        absl::StrCat(path, ": the tuning log is corrupt: cut off after ",
                     info.st_size, " of ", BytesByHeader(header),
                     " bytes; restore a backup, the file was left as it is"));
  }
  return file;
}

void RemoveLogFiles(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    unlink(absl::StrCat(path, suffix).c_str());
  }
}

}  // namespace regatta::sqlite
