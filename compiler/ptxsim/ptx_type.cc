#include "compiler/ptxsim/ptx_type.h"

#include <iterator>

namespace regatta::ptxsim {
namespace {

// In the order of the enumeration.
constexpr const char* kNames[] = {"pred", "b8",     "b16", "b32", "b64",
                                  "u8",   "u16",    "u32", "u64", "s8",
                                  "s16",  "s32",    "s64", "f16", "f16x2",
                                  "bf16", "bf16x2", "f32", "f64", "tf32"};

}  // namespace

std::optional<Type> ParseType(std::string_view modifier) {
  if (modifier.empty() || modifier[0] != '.') return std::nullopt;
  modifier.remove_prefix(1);
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == modifier) return static_cast<Type>(i);
  }
  return std::nullopt;
}

const char* TypeName(Type type) { return kNames[static_cast<int>(type)]; }

}  // namespace regatta::ptxsim
