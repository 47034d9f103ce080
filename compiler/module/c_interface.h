// The text of the C header that `regatta compile` writes beside a library.
#ifndef REGATTA_COMPILER_MODULE_C_INTERFACE_H_
#define REGATTA_COMPILER_MODULE_C_INTERFACE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/module/module.h"

namespace regatta {

// Return codes of the generated functions.
inline constexpr int kCallOk = 0;
inline constexpr int kCallNoMemory = 1;  // workspace could not be allocated
inline constexpr int kCallNullArgument = 2;
inline constexpr int kCallMisaligned = 3;  // a pointer breaks its type's size

// A C identifier from a header's file name: "out/my-k.h" -> "my_k".
// InvalidArgument when nothing usable is left, or when the name does not begin
// with a letter, is a C keyword, main, a function of the C library or begins as
// include guards do.
absl::StatusOr<std::string> FunctionName(std::string_view header_path);

// The header: include guard, declarations, and a comment with shapes, types,
// alignment, thread use, ABI version, schedule and how it was chosen (`grade`
// and `reason`, one line).
std::string CHeader(const Module& module, std::string_view grade,
                    std::string_view reason);

// Every symbol that a module of this name exports.
std::vector<std::string> ExportedNames(std::string_view function);

// One function of a library. The module outlives it.
struct HeaderFunction {
  const Module* module = nullptr;
  std::string grade;
  std::string reason;
};
// The header of a library of several: what CHeader says of each, in their
// order. `library` is a C identifier for the include guard.
std::string CLibraryHeader(absl::Span<const HeaderFunction> functions,
                           std::string_view library);

}  // namespace regatta

#endif  // REGATTA_COMPILER_MODULE_C_INTERFACE_H_
