// A folder for one worker to write to, for drivers that keep compiled code and
// temporary files. Made by the spawner, removed when this is destroyed.
//
// Not thread-safe.
#ifndef REGATTA_DEVICE_AGENT_SANDBOX_SCRATCH_FOLDER_H_
#define REGATTA_DEVICE_AGENT_SANDBOX_SCRATCH_FOLDER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace regatta {

class ScratchFolder {
 public:
  // Belongs to `owner`, else to the caller; nobody else may look into it.
  // Internal when it cannot be made.
  static absl::StatusOr<std::unique_ptr<ScratchFolder>> Create(
      std::optional<uid_t> owner, int64_t bytes);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // Removes those of killed spawners: of ours, what nobody holds any more.
  // `owners`: users whose they may be.
  static void RemoveStale(const std::set<uid_t>& owners);

  const std::string& path() const { return path_; }
  // In a mount namespace of the worker's own: puts memory of at most `bytes`
  // bytes there, gone with the namespace. Cgroups count it as the worker's.
  absl::Status MountMemory() const;

 private:
  ScratchFolder(std::string path, std::optional<uid_t> owner, int64_t bytes)
      : path_(std::move(path)), owner_(owner), bytes_(bytes) {}

  const std::string path_;
  UniqueFd held_;  // the folder, locked for as long as this process wants it
  const std::optional<uid_t> owner_;
  const int64_t bytes_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SANDBOX_SCRATCH_FOLDER_H_
