#include "compiler/codegen/c_like/device_module.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "compiler/codegen/c_like/kernel_emitter.h"
#include "compiler/codegen/module_buffers.h"

namespace regatta::c_like {
namespace {

// More registers than this would only fill private memory.
constexpr int64_t kMaxRegisterElements = 4096;

absl::Status CheckProgram(const loop::Program& program) {
  for (const loop::Buffer& buffer : program.buffers) {
    if (buffer.per_thread) {
      return absl::InternalError(
          absl::StrCat("buffer ", buffer.name,
                       " is one per thread of a processor; devices have none"));
    }
    if (buffer.scope == loop::Scope::kRegister &&
        buffer.elements > kMaxRegisterElements) {
      return absl::InternalError(absl::StrCat("register buffer ", buffer.name,
                                              " has ", buffer.elements,
                                              " elements"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLimits(const EmittedKernel& kernel, const std::string& name,
                         const Target& target, std::string_view f64_feature) {
  const auto refuse = [&](std::string_view limit, int64_t needs,
                          std::string_view what, int64_t has) {
    return absl::FailedPreconditionError(
        absl::StrCat(std::string(limit), ": kernel ", name, " has ", needs, " ",
                     std::string(what), ", the target ", has));
  };
  if (target.max_group > 0 && kernel.group_threads > target.max_group) {
    return refuse("max_group", kernel.group_threads, "work-items in a group",
                  target.max_group);
  }
  if (target.local_bytes > 0 && kernel.local_bytes > target.local_bytes) {
    return refuse("local_bytes", kernel.local_bytes,
                  "bytes of memory in a group", target.local_bytes);
  }
  if (kernel.image_width > target.image_width) {
    return refuse("image_width", kernel.image_width, "pixels in a row",
                  target.image_width);
  }
  if (kernel.image_height > target.image_height) {
    return refuse("image_height", kernel.image_height, "rows of pixels",
                  target.image_height);
  }
  if (kernel.uses_f64 && !f64_feature.empty() && !target.Has(f64_feature)) {
    return absl::FailedPreconditionError(absl::StrCat(
        std::string(f64_feature), ": kernel ", name,
        " computes in f64, which the target does not say that it can"));
  }
  if (!kernel.unknown_intrinsic.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(kernel.unknown_intrinsic, ": kernel ", name,
                     " uses what the target's devices have not"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DeviceSource> EmitDeviceSource(const LoweredProgram& lowered,
                                              const Workload& workload,
                                              const Target& target,
                                              std::string_view name,
                                              const Dialect& dialect,
                                              std::string_view f64_feature) {
  RETURN_IF_ERROR(CheckProgram(lowered.program));
  DeviceSource source;
  Module& module = source.module;
  module.name = std::string(name);
  module.target = target.ToString();
  const std::vector<int> place =
      DescribeBuffers(lowered, workload, MemorySpace::kDevice, module);
  std::string kernels;
  bool uses_f64 = false;
  for (const loop::Kernel& kernel : lowered.program.kernels) {
    ModuleKernel described;
    described.entry = absl::StrCat(module.name, "_", kernel.name);
    KernelEmitter emitter(lowered.program, dialect);
    EmittedKernel emitted = emitter.Emit(kernel, described.entry);
    RETURN_IF_ERROR(CheckLimits(emitted, kernel.name, target, f64_feature));
    for (const int id : emitted.buffers) {
      described.arguments.push_back(place[id]);
    }
    described.grid = std::move(emitted.grid);
    described.group = std::move(emitted.group);
    described.shared_bytes = emitted.launch_bytes;
    module.host_sequence.push_back(static_cast<int>(module.kernels.size()));
    module.kernels.push_back(std::move(described));
    uses_f64 = uses_f64 || emitted.uses_f64;
    absl::StrAppend(&kernels, kernels.empty() ? "" : "\n", emitted.text);
  }
  const std::string prefix(kHelperPrefix);
  for (const Helper& helper : dialect.Helpers()) {
    if (absl::StrContains(
            kernels, absl::StrCat(prefix, std::string(helper.name), "("))) {
      absl::StrAppend(&source.text, helper.text, "\n");
    }
  }
  source.text += kernels;
  source.text = absl::StrReplaceAll(
      source.text, {{prefix, absl::StrCat(module.name, "_rg_")}});
  source.pragmas = dialect.Pragmas(uses_f64);
  return source;
}

}  // namespace regatta::c_like
