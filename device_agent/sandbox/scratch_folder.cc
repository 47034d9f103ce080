#include "device_agent/sandbox/scratch_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/system_error.h"

namespace regatta {
namespace {

constexpr char kPrefix[] = "regatta-scratch-";

absl::Status Error(const std::string& what) {
  return SystemError(absl::StrCat("scratch folder: ", what));
}

std::string Parent() {
  std::error_code error;
  std::string path = std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : path;
}

// The folder, locked by this process alone, whose end unlocks it; invalid where
// it is another's or gone.
UniqueFd Lock(const std::string& path) {
  UniqueFd folder(
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat held, named;
  if (!folder.valid() || flock(folder.get(), LOCK_EX | LOCK_NB) != 0 ||
      fstat(folder.get(), &held) != 0 || stat(path.c_str(), &named) != 0 ||
      held.st_ino != named.st_ino || held.st_dev != named.st_dev) {
    return UniqueFd();
  }
  return folder;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScratchFolder>> ScratchFolder::Create(
    std::optional<uid_t> owner, int64_t bytes) {
  // Once more where it was taken for stale before it was locked.
  for (int tries = 0; tries < 3; ++tries) {
    std::string path = absl::StrCat(Parent(), "/", kPrefix, "XXXXXX");
    if (mkdtemp(path.data()) == nullptr) return Error(path);
    std::unique_ptr<ScratchFolder> folder(
        new ScratchFolder(std::move(path), owner, bytes));
    folder->held_ = Lock(folder->path());
    if (!folder->held_.valid()) continue;
    if (owner.has_value() && fchown(folder->held_.get(), *owner, *owner) != 0) {
      return Error(folder->path());
    }
    return folder;
  }
  return Error("locking it");
}

void ScratchFolder::RemoveStale(const std::set<uid_t>& owners) {
  std::error_code error;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::directory_iterator(Parent(), error)) {
    const std::string path = entry.path();
    struct stat info;
    if (!absl::StartsWith(entry.path().filename().string(), kPrefix) ||
        lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
        owners.count(info.st_uid) == 0) {
      continue;
    }
    const UniqueFd lock = Lock(path);
    std::error_code ignored;
    if (lock.valid()) std::filesystem::remove_all(path, ignored);
  }
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

absl::Status ScratchFolder::MountMemory() const {
  std::string options = absl::StrCat("mode=0700,size=", bytes_);
  if (owner_.has_value()) {
    absl::StrAppend(&options, ",uid=", *owner_, ",gid=", *owner_);
  }
  if (mount("regatta", path_.c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
            options.c_str()) != 0) {
    return Error("memory for it");
  }
  return absl::OkStatus();
}

}  // namespace regatta
