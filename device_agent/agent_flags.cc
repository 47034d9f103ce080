#include "device_agent/agent_flags.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/name_check.h"
#include "base/status_macros.h"
#include "device_agent/measure/core_locks.h"

namespace regatta {

absl::Status CompleteFlags(AgentFlags* flags) {
  RETURN_IF_ERROR(CheckAddress(flags->tracker));
  RETURN_IF_ERROR(CheckName("--governor", flags->governor));
  if (flags->lock_folder.empty()) flags->lock_folder = DefaultLockFolder();
  if (flags->worker_dir.empty()) {
    std::error_code error;
    flags->worker_dir =
        std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    if (error) {
      return absl::InternalError(
          absl::StrCat("cannot find this program's folder: ", error.message(),
                       "; give --worker-dir"));
    }
  }
  if (flags->state.empty()) flags->state = DefaultStateDir();
  if (!flags->cuda_driver.empty()) {
    std::error_code error;
    flags->cuda_driver = std::filesystem::absolute(flags->cuda_driver, error);
    if (error) {
      return absl::InvalidArgumentError(
          absl::StrCat("--cuda-driver: ", error.message()));
    }
  }
  return MakeStateDir(flags->state);
}

RunnerOptions RunnerOptionsOf(const AgentFlags& flags) {
  RunnerOptions options;
  options.worker_dir = flags.worker_dir;
  options.exec_prefix =
      absl::StrSplit(flags.exec_prefix, ' ', absl::SkipEmpty());
  options.state_dir = flags.state;
  options.lock_folder = flags.lock_folder;
  options.clocks.governor = flags.governor;
  options.required_sandbox = flags.require_sandbox;
  return options;
}

}  // namespace regatta
