// Pieces of the C that `regatta compile` writes for people: headers of
// libraries (c_interface.h) and launchers of devices (compiler/launcher).
// Pure functions; thread-safe.
#ifndef REGATTA_COMPILER_MODULE_C_TEXT_H_
#define REGATTA_COMPILER_MODULE_C_TEXT_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/module/module.h"

namespace regatta {

// Include guards begin with it, and no other name may: a macro would take it.
inline constexpr std::string_view kGuardPrefix = "REGATTA_KERNEL_";

// Text that is safe on one line of a C comment.
std::string CommentText(std::string_view text);

// A tensor as a parameter of generated functions.
struct TensorParameter {
  const ModuleBuffer* buffer = nullptr;
  std::string name;
  std::string c_type;  // "const float": what a pointer to it points to
};

// The inputs of `module`, then its outputs. Names are C identifiers, differ
// from one another and are none of `taken`.
std::vector<TensorParameter> TensorParameters(const Module& module,
                                              std::set<std::string> taken);

// "const float *A, float *B".
std::string ParameterList(const std::vector<TensorParameter>& parameters);
// A line of a comment: "A: input, f32[3,4], 48 bytes", then `more`.
std::string ParameterComment(const TensorParameter& parameter,
                             std::string_view more);
// Lines of a comment: workload, target, schedule, how it was chosen, compiler.
std::string OriginComment(const Module& module, std::string_view grade,
                          std::string_view reason);

// The include guard of `name` (a C identifier), standard headers and the
// beginning of what C++ must take for C; and the end of both.
std::string HeaderBegin(std::string_view name);
std::string_view HeaderEnd();

}  // namespace regatta

#endif  // REGATTA_COMPILER_MODULE_C_TEXT_H_
