#include "compiler/codegen/opencl/opencl_code_generator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/codegen/c_like/device_module.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/codegen/opencl/opencl_dialect.h"
#include "compiler/module/opencl_features.h"

namespace regatta {
namespace {

constexpr int kDefaultVectorBits = 128;
// What nearly every device has (the specification asks for less).
constexpr int kDefaultMaxGroup = 256;
constexpr int64_t kDefaultLocalBytes = 32 << 10;

absl::StatusOr<c_like::DeviceSource> Emit(const LoweredProgram& program,
                                          const Workload& workload,
                                          const Target& target,
                                          std::string_view name) {
  const opencl::OpenClDialect dialect(target);
  ASSIGN_OR_RETURN(c_like::DeviceSource source,
                   c_like::EmitDeviceSource(program, workload, target, name,
                                            dialect, "cl_khr_fp64"));
  source.module.compiler_version =
      CompilerVersionOf(OpenClCodeGenerator().tool_version(target));
  source.module.relocatable = absl::StrCat(source.pragmas, source.text);
  return source;
}

}  // namespace

absl::StatusOr<Target> OpenClCodeGenerator::Complete(Target target) const {
  const auto bad = [](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("target: ", what));
  };
  if (!target.triple.empty() || !target.mcpu.empty() ||
      target.vector_registers != 0 || target.max_registers != 0 ||
      target.driver != 0 || !target.products.empty()) {
    return bad(
        "an OpenCL device is described by features, vector_bits, max_group, "
        "local_bytes, subgroup, image_width and image_height; its driver knows "
        "the rest");
  }
  for (const std::string& feature : target.features) {
    if (feature[0] != '+') {
      return bad(absl::StrCat("feature '", feature,
                              "' is taken away; an OpenCL device has those "
                              "that are named, such as +cl_khr_fp16"));
    }
    const std::string name = feature.substr(1);
    if (std::find(std::begin(kOpenClFeatures), std::end(kOpenClFeatures),
                  name) == std::end(kOpenClFeatures)) {
      return bad(absl::StrCat("unknown feature '", name, "'; known are ",
                              absl::StrJoin(kOpenClFeatures, ", ")));
    }
  }
  if (target.vector_bits == 0) target.vector_bits = kDefaultVectorBits;
  if (target.max_group == 0) target.max_group = kDefaultMaxGroup;
  if (target.local_bytes == 0) target.local_bytes = kDefaultLocalBytes;
  if (target.vector_bits < 32 ||
      (target.vector_bits & (target.vector_bits - 1)) != 0) {
    return bad(absl::StrCat("vector_bits=", target.vector_bits,
                            " is not a power of two of at least 32"));
  }
  if ((target.image_width == 0) != (target.image_height == 0)) {
    return bad("image_width and image_height go together");
  }
  return target;
}

absl::StatusOr<Target> OpenClCodeGenerator::Host() const {
  return absl::UnavailableError(
      "what OpenCL devices a machine has is its drivers' to say: the agent of "
      "a "
      "board asks them");
}

absl::StatusOr<Module> OpenClCodeGenerator::Generate(
    const LoweredProgram& program, const Workload& workload,
    const Target& target, std::string_view name) const {
  ASSIGN_OR_RETURN(Module module,
                   GeneratePart(program, workload, target, name));
  module.loadable = std::exchange(module.relocatable, "");
  return module;
}

absl::StatusOr<Module> OpenClCodeGenerator::GeneratePart(
    const LoweredProgram& program, const Workload& workload,
    const Target& target, std::string_view name) const {
  ASSIGN_OR_RETURN(c_like::DeviceSource source,
                   Emit(program, workload, target, name));
  return std::move(source.module);
}

// Names begin with those of the modules, so sources stand beside each other.
absl::StatusOr<std::string> OpenClCodeGenerator::LinkLibrary(
    absl::Span<const std::string> parts, const Target&) const {
  return absl::StrJoin(parts, "\n");
}

}  // namespace regatta
