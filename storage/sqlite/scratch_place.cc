#include "storage/sqlite/scratch_place.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace regatta::sqlite {

int64_t RoomIn(const std::string& folder) {
  struct statvfs system = {};
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0 ||
      statvfs(folder.c_str(), &system) != 0) {
    return -1;
  }
  return static_cast<int64_t>(system.f_bavail) *
         static_cast<int64_t>(system.f_frsize);
}

absl::StatusOr<std::string> ScratchFolder(
    const std::vector<std::string>& folders, int64_t bytes,
    const std::function<int64_t(const std::string&)>& room) {
  std::vector<std::string> too_small;
  for (const std::string& folder : folders) {
    const int64_t free = room(folder);
    if (free >= bytes) return folder;
    too_small.push_back(
        free < 0 ? folder + " cannot be written to"
                 : absl::StrCat(folder, " has ", free >> 20, " MiB"));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "a copy of the log needs ", (bytes >> 20) + 1, " MiB for a moment, and ",
      absl::StrJoin(too_small, ", "),
      "; make room in one of them, or set TMPDIR to a folder that has it (a "
      "server's own, while it runs; else `regatta log backup --log LOG`'s)"));
}

}  // namespace regatta::sqlite
