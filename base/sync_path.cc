#include "base/sync_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/unique_fd.h"

namespace regatta {

int SyncPath(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return errno;
  return fsync(file.get()) == 0 ? 0 : errno;
}

int SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return SyncPath(folder.empty() ? "." : folder);
}

}  // namespace regatta
