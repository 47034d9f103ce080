// The fundamental types of PTX and what the simulator needs to know of them.
// Pure functions; thread-safe.
#ifndef REGATTA_COMPILER_PTXSIM_PTX_TYPE_H_
#define REGATTA_COMPILER_PTXSIM_PTX_TYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace regatta::ptxsim {

enum class Type : uint8_t {
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBF16,
  kBF16x2,
  kF32,
  kF64,
  kTF32,
};

// The type that a modifier such as ".f32" (dot included) names.
std::optional<Type> ParseType(std::string_view modifier);

// "f32", without a dot.
const char* TypeName(Type type);

// Bytes that a value takes in memory; a predicate has none and gives 0.
constexpr int TypeBytes(Type type) {
  switch (type) {
    case Type::kPred:
      return 0;
    case Type::kB8:
    case Type::kU8:
    case Type::kS8:
      return 1;
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBF16:
      return 2;
    case Type::kB32:
    case Type::kU32:
    case Type::kS32:
    case Type::kF32:
    case Type::kF16x2:
    case Type::kBF16x2:
    case Type::kTF32:
      return 4;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
      return 8;
  }
  return 0;
}

constexpr bool IsSigned(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 ||
         type == Type::kS64;
}

// Floats of any kind, packed ones included.
constexpr bool IsFloat(Type type) { return type >= Type::kF16; }

// Untyped bits or an integer.
constexpr bool IsInteger(Type type) {
  return type >= Type::kB8 && type <= Type::kS64;
}

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_PTX_TYPE_H_
