// Reads the text of a tensor expression.
//
// Grammar (blanks are free; `;` separates stages):
//   workload  := stage (";" stage)* "where" binding ("," binding)*
//   stage     := NAME "[" index ("," index)* "]" "=" [reduction] value
//   reduction := ("sum" | "prod" | "max" | "min") "(" index ("," index)* ")"
//   value     := the usual precedence of + - * / and unary -, comparisons,
//                f(x) for exp log sqrt rsqrt tanh sigmoid erf abs floor round,
//                max(a,b) min(a,b) select(c,a,b), f32(x) f16(x) bf16(x) i32(x)
//                i8(x) for casts, numbers, index names as numbers,
//                T[affine,...] and pad(T[affine,...], number), which reads
//                `number` outside T
//   binding   := index "=" integer | "dtype" "=" type |
//                TENSOR "=" type "[" integer ("," integer)* "]"
// A reduction binds the whole right-hand side. A tensor without a binding has
// the default dtype and the smallest shape that its accesses need; a tensor
// read through pad() must be bound. The default dtype is f32.
//
// Types: arithmetic happens in f32 or i32; narrower operands are widened by
// casts that become part of the expression, floats and integers mix only
// through written casts, and numbers and index names take the type of what they
// meet. A reduction's value has the accumulator's type; storing converts it.
// Integers are not divided. `a > b` is read as `b < a`.
#ifndef REGATTA_COMPILER_EXPR_PARSER_H_
#define REGATTA_COMPILER_EXPR_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/expr/expr.h"

namespace regatta {

// A verified workload with `family`, `text`, `canonical` and `key` filled in.
// InvalidArgument names the line-free position ("at character 17, near
// '* B[q'") and what was expected, or the index or tensor that is wrong.
absl::StatusOr<Workload> ParseExpression(std::string_view text);
// The same without `family` and `text`, for a caller that has its own.
absl::StatusOr<Workload> ParseUnnamedExpression(std::string_view text);

}  // namespace regatta

#endif  // REGATTA_COMPILER_EXPR_PARSER_H_
