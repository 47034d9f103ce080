#include "compiler/module/dtype.h"

#include "base/check.h"

namespace regatta {

std::string_view DTypeName(DType type) {
  switch (type) {
    case DType::kF64:
      return "f64";
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kI32:
      return "i32";
    case DType::kI8:
      return "i8";
    case DType::kBool:
      return "bool";
  }
  CHECK(false) << "dtype " << static_cast<int>(type);
}

std::optional<DType> ParseTensorDType(std::string_view name) {
  for (DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kI8}) {
    if (name == DTypeName(type)) return type;
  }
  return std::nullopt;
}

int64_t DTypeBytes(DType type) {
  switch (type) {
    case DType::kF64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kI8:
    case DType::kBool:
      return 1;
  }
  CHECK(false) << "dtype " << static_cast<int>(type);
}

bool IsFloat(DType type) {
  return type == DType::kF64 || type == DType::kF32 || type == DType::kF16 ||
         type == DType::kBF16;
}

DType AccumulatorType(DType type) {
  if (type == DType::kF64) return DType::kF64;
  return IsFloat(type) ? DType::kF32 : DType::kI32;
}

}  // namespace regatta
