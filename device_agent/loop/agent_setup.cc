#include "device_agent/loop/agent_setup.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/name_check.h"
#include "base/state_dir.h"
#include "base/status_macros.h"
#include "device_agent/probe/arm_registers.h"
#include "device_agent/spawner/cpu_list.h"
#include "proto/device_build.h"

namespace regatta {
namespace {

// As triples call what this program is compiled for; "": not known.
constexpr std::string_view kOwnArchitecture =
#if defined(__x86_64__)
    "x86_64";
#elif defined(__aarch64__) && defined(__AARCH64EL__)
    "aarch64";
#else
    "";
#endif

}  // namespace

absl::StatusOr<AgentRoles> ParseRoles(const AgentFlags& flags) {
  AgentRoles roles;
  for (const std::string& role : flags.roles) {
    if (role == "device") {
      roles.device = true;
    } else if (role == "builder") {
      roles.builder = true;
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "--role: \"", role, "\" is no role; roles are device, builder"));
    }
  }
  if (roles.builder && flags.measure_only) {
    return absl::InvalidArgumentError(
        "--measure-only: a builder builds; leave one of the two out");
  }
  if (flags.measure_only && flags.trust_builders.empty()) {
    return absl::InvalidArgumentError(
        "--measure-only: name the builders whose modules this board may run "
        "with --trust-builder");
  }
  return roles;
}

v1::DescribeRequest HostRequest(const AgentFlags& flags, bool elsewhere,
                                bool emulated, const std::vector<int>& cpus) {
  v1::DescribeRequest request;
  if (!flags.target.empty()) {
    request.set_target(flags.target);
  } else if (elsewhere || emulated) {
    v1::BoardProcessor& processor = *request.mutable_processor();
    processor = ReadProcessor("", cpus);
    if (ArmRegisters registers; emulated && ReadArmRegisters(&registers)) {
      processor.set_cpuinfo(
          ArmCpuInfo(registers, static_cast<int>(cpus.size())));
    }
  }
  return request;
}

absl::Status CheckProcessorTarget(const std::string& source,
                                  const std::string& target) {
  if (const std::string kind = KindOfTarget(target); kind != "cpu") {
    return absl::InvalidArgumentError(absl::StrCat(
        source,
        ": a target of this board's processors is of kind cpu, as in "
        "'cpu,triple=aarch64-linux-gnu,mcpu=cortex-a76', not '",
        kind, "'; other devices say their own"));
  }
  std::string architecture = ArchitectureOfTarget(target);
  for (const auto& [other, name] :
       {std::pair{"amd64", "x86_64"}, std::pair{"arm64", "aarch64"}}) {
    if (architecture == other) architecture = name;
  }
  const std::string own(kOwnArchitecture);
  if (own.empty() || architecture.empty() || architecture == own) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      source, ": this agent runs on ", own, ", and the target ", target,
      " is of ", architecture, ", whose code does not run here"));
}

absl::Status CheckAddress(const std::string& text) {
  const auto parts = SplitHostPort(text);
  if (parts.ok() && parts->second >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--tracker: \"", text, "\" is no HOST:PORT, for example 127.0.0.1:7471"));
}

absl::Status CheckSimulatedName(const std::string& flag,
                                const std::string& text) {
  if (absl::StartsWith(text, kSimulatedPrefix)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": \"", text, "\" must begin with \"",
                   kSimulatedPrefix, "\", for an emulator runs this agent"));
}

absl::Status CheckNames(const AgentFlags& flags, bool simulated) {
  for (const auto& [flag, name] :
       {std::pair("--id", flags.id),
        std::pair("--device-class", flags.device_class)}) {
    if (name.empty()) continue;
    RETURN_IF_ERROR(CheckName(flag, name));
    if (simulated) RETURN_IF_ERROR(CheckSimulatedName(flag, name));
  }
  return absl::OkStatus();
}

std::string DefaultStateDir() {
  return UserStateDir("/var/lib/regatta") + "/agent";
}

absl::Status MakeStateDir(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path, error)) {
    return absl::PermissionDeniedError(
        absl::StrCat("--state: cannot make the folder ", path, ": ",
                     error ? error.message() : "it is a file"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Description> DescribeHost(int cores, BuildWorkerInfo& worker,
                                             const std::string& asked) {
  v1::DescribeRequest request;
  request.set_cores(cores);
  absl::StatusOr<v1::Description> description = worker.Describe(request);
  if (!description.ok()) {
    return Annotate(description.status(), "asking " + asked);
  }
  return description;
}

absl::StatusOr<v1::Hello> MakeHello(const AgentFlags& flags,
                                    const Machine& machine,
                                    const std::vector<int>& cpus,
                                    const std::string& state_dir,
                                    const v1::Description& host,
                                    bool simulated) {
  RETURN_IF_ERROR(CheckNames(flags, simulated));
  v1::Hello hello;
  if (flags.id.empty()) {
    ASSIGN_OR_RETURN(const std::string id,
                     StableDeviceId(machine, FormatCpuList(cpus), state_dir));
    hello.set_agent_id(absl::StrCat(simulated ? kSimulatedPrefix : "", id));
  } else {
    hello.set_agent_id(flags.id);
  }
  hello.set_instance_id(RandomId());
  hello.set_boot_id(machine.boot_id);
  hello.set_agent_version(REGATTA_VERSION);
  hello.set_compiler_version(host.compiler_version());
  hello.set_space(host.space());
  hello.set_space_version(host.space_version());
  return hello;
}

}  // namespace regatta
