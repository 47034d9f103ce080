// Text to syntax: names, nesting and numbers, but no types and no shapes yet.
#ifndef REGATTA_COMPILER_EXPR_SYNTAX_PARSER_H_
#define REGATTA_COMPILER_EXPR_SYNTAX_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/expr/syntax.h"

namespace regatta {

// InvalidArgument with the position and what was expected. REQUIRES: `text`
// outlives the result.
absl::StatusOr<WorkloadSyntax> ParseSyntax(std::string_view text);

}  // namespace regatta

#endif  // REGATTA_COMPILER_EXPR_SYNTAX_PARSER_H_
