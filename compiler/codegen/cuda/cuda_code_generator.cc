#include "compiler/codegen/cuda/cuda_code_generator.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "compiler/codegen/c_like/device_module.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/codegen/cuda/cuda_dialect.h"
#include "compiler/codegen/cuda/cuda_target.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/module/cuda_binary.h"
#include "compiler/ptxsim/cubin.h"

namespace regatta {
namespace {

// Kernels take tenths of a second. What takes this long would never pay.
constexpr absl::Duration kCompileLimit = absl::Seconds(30);

// 80 of "sm_80" and "sm_80a".
int ArchitectureNumber(const std::string& mcpu) {
  return std::atoi(mcpu.c_str() + std::min<size_t>(3, mcpu.size()));
}

// Kernels have no arrays of their own in local memory: what is there was spilt.
absl::Status CheckUsage(const std::string& cubin, const Target& target) {
  ASSIGN_OR_RETURN(const ptxsim::Cubin read, ptxsim::ReadCubin(cubin));
  for (const ptxsim::CubinKernel& kernel : read.kernels) {
    if (kernel.UsesLocalMemory()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "registers: kernel ", kernel.name, " keeps ", kernel.frame_bytes,
          " bytes of each thread in memory for want of registers"));
    }
    if (target.max_registers > 0 && kernel.registers > target.max_registers) {
      return absl::FailedPreconditionError(absl::StrCat(
          "registers: kernel ", kernel.name, " takes ", kernel.registers,
          " registers of a thread, the target has ", target.max_registers));
    }
  }
  return absl::OkStatus();
}

// The compiler for `target`. Unavailable with what to install.
absl::StatusOr<const cuda::Nvrtc*> CompilerFor(const Target& target) {
  ASSIGN_OR_RETURN(const cuda::Nvrtc* nvrtc, cuda::Nvrtc::Load(target.driver));
  const std::vector<int>& known = nvrtc->architectures();
  if (std::find(known.begin(), known.end(), ArchitectureNumber(target.mcpu)) ==
      known.end()) {
    return absl::UnavailableError(
        absl::StrCat(nvrtc->version(), " does not compile for ", target.mcpu,
                     "; it does for ", absl::StrJoin(known, ", "),
                     ". Install another version"));
  }
  return nvrtc;
}

absl::StatusOr<std::string> CompileSource(const std::string& source,
                                          const Target& target) {
  ASSIGN_OR_RETURN(const cuda::Nvrtc* nvrtc, CompilerFor(target));
  absl::StatusOr<cuda::Nvrtc::Compiled> compiled =
      nvrtc->Compile(source, target.mcpu, kCompileLimit, RealClock());
  if (compiled.status().code() == absl::StatusCode::kInvalidArgument) {
    // The emitter's fault, not the caller's.
    return absl::InternalError(compiled.status().message());
  }
  RETURN_IF_ERROR(compiled.status());
  RETURN_IF_ERROR(CheckUsage(compiled->cubin, target));
  return SerializeCudaBinary({.arch = target.mcpu,
                              .cubin = std::move(compiled->cubin),
                              .ptx = std::move(compiled->ptx)});
}

}  // namespace

std::string CudaCodeGenerator::tool_version(const Target& target) const {
  return cuda::NvrtcVersion(target.driver);
}

std::vector<std::string> CudaCodeGenerator::ToolVersions() const {
  std::vector<std::string> versions;
  for (const int driver : {0, 13, 12}) {
    if (!cuda::Nvrtc::Load(driver).ok()) continue;
    std::string version = cuda::NvrtcVersion(driver);
    if (std::find(versions.begin(), versions.end(), version) ==
        versions.end()) {
      versions.push_back(std::move(version));
    }
  }
  return versions;
}

absl::Status CudaCodeGenerator::CheckTool(const Target& target) const {
  return CompilerFor(target).status();
}

absl::StatusOr<Target> CudaCodeGenerator::Complete(Target target) const {
  return cuda::CompleteCudaTarget(std::move(target));
}

absl::StatusOr<Target> CudaCodeGenerator::Host() const {
  return absl::UnavailableError(
      "what CUDA devices a machine has is the driver's to say: the agent of a "
      "board asks it");
}

absl::StatusOr<Module> CudaCodeGenerator::Generate(
    const LoweredProgram& program, const Workload& workload,
    const Target& target, std::string_view name) const {
  ASSIGN_OR_RETURN(Module module,
                   GeneratePart(program, workload, target, name));
  ASSIGN_OR_RETURN(
      module.loadable,
      CompileSource(std::exchange(module.relocatable, ""), target));
  return module;
}

absl::StatusOr<Module> CudaCodeGenerator::GeneratePart(
    const LoweredProgram& program, const Workload& workload,
    const Target& target, std::string_view name) const {
  ASSIGN_OR_RETURN(c_like::DeviceSource source,
                   c_like::EmitDeviceSource(
                       program, workload, target, name,
                       cuda::CudaDialect(ArchitectureNumber(target.mcpu)),
                       /*f64_feature=*/""));
  source.module.compiler_version = CompilerVersionOf(tool_version(target));
  source.module.relocatable = absl::StrCat(source.pragmas, source.text);
  return std::move(source.module);
}

// Names begin with those of the modules, so sources stand beside each other.
absl::StatusOr<std::string> CudaCodeGenerator::LinkLibrary(
    absl::Span<const std::string> parts, const Target& target) const {
  return CompileSource(absl::StrJoin(parts, "\n"), target);
}

}  // namespace regatta
