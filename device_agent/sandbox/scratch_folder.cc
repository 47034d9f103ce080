#include "device_agent/sandbox/scratch_folder.h"

#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

absl::Status Error(const std::string& what) {
  return absl::InternalError(
      absl::StrCat("scratch folder: ", what, ": ", strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScratchFolder>> ScratchFolder::Create(
    std::optional<uid_t> owner, int64_t bytes) {
  std::error_code error;
  std::string path = std::filesystem::temp_directory_path(error);
  if (error) path = "/tmp";
  path += "/regatta-scratch-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return Error(path);
  std::unique_ptr<ScratchFolder> folder(
      new ScratchFolder(std::move(path), owner, bytes));
  if (owner.has_value() && chown(folder->path().c_str(), *owner, *owner) != 0) {
    return Error(folder->path());
  }
  return folder;
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
