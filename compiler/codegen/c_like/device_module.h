// A lowered program as source text in a dialect, and the module around it.
#ifndef REGATTA_COMPILER_CODEGEN_C_LIKE_DEVICE_MODULE_H_
#define REGATTA_COMPILER_CODEGEN_C_LIKE_DEVICE_MODULE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/codegen/c_like/dialect.h"
#include "compiler/expr/expr.h"
#include "compiler/lower/lower.h"
#include "compiler/module/module.h"
#include "compiler/target/target.h"

namespace regatta::c_like {

struct DeviceSource {
  std::string text;     // kernels and what they call, without pragmas
  std::string pragmas;  // what must stand once, before all text
  Module module;        // all but compiler_version, loadable and relocatable
};

// Deterministic. FailedPrecondition, beginning with the name of the limit, when
// a kernel needs more than `target` has: "max_group: ...", "local_bytes: ...",
// "cl_khr_fp64: ...". Internal when the program holds what no device runs.
absl::StatusOr<DeviceSource> EmitDeviceSource(const LoweredProgram& lowered,
                                              const Workload& workload,
                                              const Target& target,
                                              std::string_view name,
                                              const Dialect& dialect,
                                              std::string_view f64_feature);

}  // namespace regatta::c_like

#endif  // REGATTA_COMPILER_CODEGEN_C_LIKE_DEVICE_MODULE_H_
