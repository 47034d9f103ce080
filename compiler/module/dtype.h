// Element types. The names are those of the workload text ("f32").
#ifndef REGATTA_COMPILER_MODULE_DTYPE_H_
#define REGATTA_COMPILER_MODULE_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace regatta {

// kF64 and kBool exist inside the compiler only (wide accumulation,
// conditions); a workload's tensors have one of the others.
enum class DType { kF64, kF32, kF16, kBF16, kI32, kI8, kBool };

std::string_view DTypeName(DType type);
// Absent for a name that no tensor may have.
std::optional<DType> ParseTensorDType(std::string_view name);
int64_t DTypeBytes(DType type);
bool IsFloat(DType type);
// The type that sums of `type` are accumulated in: f32 for floats, i32 for
// integers.
DType AccumulatorType(DType type);

}  // namespace regatta

#endif  // REGATTA_COMPILER_MODULE_DTYPE_H_
