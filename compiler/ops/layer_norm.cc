#include "compiler/ops/layer_norm.h"

#include "absl/strings/substitute.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/norms.h"
#include "compiler/ops/op_types.h"

namespace regatta {
namespace {

// The variance is that of differences from the mean: the difference of two
// large squares would lose it.
absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const std::string part =
      Real(1.0 / static_cast<double>(arguments.Int("cols")));
  return absl::Substitute(
      "S[i] = sum(j) X[i,j]; D[i,j] = X[i,j] - S[i] * $3; "
      "Q[i] = sum(j) D[i,j] * D[i,j]; R[i] = rsqrt(Q[i] * $3 + $4); "
      "Y[i,j] = D[i,j] * R[i] * gamma[j] + beta[j] "
      "where i=$0, j=$1, dtype=$2, S=f32[$0], D=f32[$0,$1], Q=f32[$0], "
      "R=f32[$0]",
      arguments.Int("rows"), arguments.Int("cols"), arguments.Word("dtype"),
      part, arguments.Word("eps"));
}

}  // namespace

Op LayerNormOp() {
  return {
      .name = "layer_norm",
      .help =
          "every row of X[rows,cols] with mean 0 and variance 1, times "
          "gamma[cols], plus beta[cols]",
      .parameters = {{.name = "rows", .help = "rows"},
                     {.name = "cols", .help = "columns, summed over"},
                     EpsParameter(),
                     DTypeParameter(/*integers=*/false)},
      .expression = Expression,
      .samples = {"layer_norm(rows=64,cols=128)",
                  "layer_norm(rows=1,cols=1000)", "layer_norm(rows=37,cols=61)",
                  "layer_norm(rows=5,cols=1)", "layer_norm(rows=1,cols=1)",
                  "layer_norm(rows=9,cols=35,eps=0.001)",
                  "layer_norm(rows=9,cols=33,dtype=f16)",
                  "layer_norm(rows=9,cols=33,dtype=bf16)"}};
}

}  // namespace regatta
