// Reads PTX text into its syntax. What the opcodes mean is the decoder's
// business; this knows directives, declarations, scopes and operands.
#ifndef REGATTA_COMPILER_PTXSIM_PARSER_H_
#define REGATTA_COMPILER_PTXSIM_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ptxsim/syntax.h"

namespace regatta::ptxsim {

// InvalidArgument, naming the line, for text that is not PTX or uses a
// directive that the simulator does not know. Never crashes, whatever the text.
absl::StatusOr<RawModule> ParsePtx(std::string_view text);

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_PARSER_H_
