#include "device_agent/agent_flags.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "base/name_check.h"
#include "base/status_macros.h"
#include "device_agent/measure/core_locks.h"
#include "device_agent/probe/emulator.h"
#include "device_agent/probe/machine.h"
#include "device_agent/remote/builder_key.h"

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
  return absl::OkStatus();
}

namespace {

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

}  // namespace

absl::StatusOr<AgentPlan> PlanAgent(const AgentFlags& flags) {
  AgentPlan plan;
  ASSIGN_OR_RETURN(plan.roles, ParseRoles(flags));
  ASSIGN_OR_RETURN(plan.providers, ChooseProviders(flags.devices));
  ASSIGN_OR_RETURN(plan.cpus, ChooseCpus(flags.cores, AllowedCpus()));
  if (!flags.target.empty()) {
    RETURN_IF_ERROR(CheckProcessorTarget("--target", flags.target));
  }
  if (!flags.cuda_driver.empty()) {
    RETURN_IF_ERROR(
        Annotate(CheckSharedLibrary(flags.cuda_driver), "--cuda-driver"));
  }
  ASSIGN_OR_RETURN(plan.trusted, ParseTrustedBuilders(flags.trust_builders));
  plan.runner = RunnerOptionsOf(flags);
  const bool worker_missing =
      absl::IsNotFound(BuildWorkerOf(plan.runner).status());
  plan.measure_only =
      plan.roles.device &&
      (flags.measure_only || (worker_missing && !plan.trusted.empty()));
  if (worker_missing && plan.roles.device && !plan.measure_only) {
    return absl::FailedPreconditionError(absl::StrCat(
        "there is no regatta-build-worker in ", flags.worker_dir,
        ": name a builder that builds for this board with --trust-builder KEY "
        "(docs/builders.md), or install a build with a compiler there"));
  }
  if (!plan.measure_only && !plan.trusted.empty()) {
    LOG(kWarning) << "--trust-builder changes nothing: this board has a build "
                     "worker of its own; --measure-only does without it";
    plan.trusted.clear();
  }
  ASSIGN_OR_RETURN(plan.emulator, FindEmulator());
  return plan;
}

absl::Status CheckAgentOptions(AgentFlags flags,
                               const AgentSecurityFlags& security) {
  RETURN_IF_ERROR(CheckMetrics(security.metrics));
  RETURN_IF_ERROR(CompleteFlags(&flags));
  ASSIGN_OR_RETURN(const AgentPlan plan, PlanAgent(flags));
  RETURN_IF_ERROR(CheckAgentIdentity(security, flags.tracker, &flags.id));
  return CheckNames(flags, /*simulated=*/!plan.emulator.empty());
}

}  // namespace regatta
