#include "device_agent/sandbox/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace regatta {
namespace {

// Newer than Debian 12's header; the kernel's interface is stable.
struct RulesetAttributes {
  uint64_t handled_access_fs = 0;
  uint64_t handled_access_net = 0;  // version 4
  uint64_t scoped = 0;              // version 6
};
constexpr uint64_t kTruncate = uint64_t{1} << 14;     // version 3
constexpr uint64_t kDeviceIoctl = uint64_t{1} << 15;  // version 5
constexpr uint64_t kBindAndConnect = 3;
constexpr uint64_t kAbstractSocketsAndSignals = 3;

constexpr uint64_t kRead =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kExecute = LANDLOCK_ACCESS_FS_EXECUTE;
// What a rule for a single file may grant.
constexpr uint64_t kFileRights = LANDLOCK_ACCESS_FS_READ_FILE |
                                 LANDLOCK_ACCESS_FS_WRITE_FILE | kExecute |
                                 kTruncate | kDeviceIoctl;

// Every right of files that this version of the kernel can refuse.
uint64_t AllRights(int version) {
  uint64_t rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  if (version >= 2) rights |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) rights |= kTruncate;
  if (version >= 5) rights |= kDeviceIoctl;
  return rights;
}

absl::Status Allow(int ruleset, int file, uint64_t rights,
                   absl::string_view what) {
  struct stat info;
  if (fstat(file, &info) == 0 && !S_ISDIR(info.st_mode)) rights &= kFileRights;
  landlock_path_beneath_attr rule = {};
  rule.allowed_access = rights;
  rule.parent_fd = file;
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule,
              0) != 0) {
    return absl::InternalError(
        absl::StrCat("landlock rule for ", what, ": ", strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status AllowPaths(int ruleset, const std::vector<std::string>& paths,
                        uint64_t rights) {
  for (const std::string& path : paths) {
    const UniqueFd file(open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!file.valid()) continue;
    RETURN_IF_ERROR(Allow(ruleset, file.get(), rights, path));
  }
  return absl::OkStatus();
}

}  // namespace

int LandlockVersion() {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0,
                               LANDLOCK_CREATE_RULESET_VERSION);
  return version < 0 ? 0 : static_cast<int>(version);
}

absl::Status RestrictFiles(const LandlockRules& rules) {
  const int version = LandlockVersion();
  if (version == 0) {
    return absl::FailedPreconditionError("this kernel has no Landlock");
  }
  RulesetAttributes attributes;
  attributes.handled_access_fs = AllRights(version);
  size_t size = offsetof(RulesetAttributes, handled_access_net);
  if (version >= 4) {
    attributes.handled_access_net = kBindAndConnect;
    size = offsetof(RulesetAttributes, scoped);
  }
  if (version >= 6) {
    attributes.scoped = kAbstractSocketsAndSignals;
    size = sizeof(attributes);
  }
  const UniqueFd ruleset(static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &attributes, size, 0)));
  if (!ruleset.valid()) {
    return absl::InternalError(
        absl::StrCat("landlock ruleset: ", strerror(errno)));
  }
  RETURN_IF_ERROR(AllowPaths(ruleset.get(), rules.readable, kRead));
  RETURN_IF_ERROR(
      AllowPaths(ruleset.get(), rules.executable, kRead | kExecute));
  RETURN_IF_ERROR(AllowPaths(ruleset.get(), rules.writable,
                             AllRights(version) & ~kExecute));
  for (int file : rules.executable_files) {
    RETURN_IF_ERROR(Allow(ruleset.get(), file, kRead | kExecute, "a program"));
  }
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    return absl::InternalError(
        absl::StrCat("landlock restriction: ", strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace regatta
