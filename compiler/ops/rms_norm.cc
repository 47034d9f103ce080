#include "compiler/ops/rms_norm.h"

#include "absl/strings/substitute.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/norms.h"
#include "compiler/ops/op_types.h"

namespace regatta {
namespace {

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const std::string part =
      Real(1.0 / static_cast<double>(arguments.Int("cols")));
  return absl::Substitute(
      "Q[i] = sum(j) X[i,j] * X[i,j]; R[i] = rsqrt(Q[i] * $3 + $4); "
      "Y[i,j] = X[i,j] * R[i] * gamma[j] "
      "where i=$0, j=$1, dtype=$2, Q=f32[$0], R=f32[$0]",
      arguments.Int("rows"), arguments.Int("cols"), arguments.Word("dtype"),
      part, arguments.Word("eps"));
}

}  // namespace

Op RmsNormOp() {
  return {.name = "rms_norm",
          .help =
              "every row of X[rows,cols] with mean square 1, times "
              "gamma[cols]",
          .parameters = {{.name = "rows", .help = "rows"},
                         {.name = "cols", .help = "columns, summed over"},
                         EpsParameter(),
                         DTypeParameter(/*integers=*/false)},
          .expression = Expression,
          .samples = {"rms_norm(rows=64,cols=128)", "rms_norm(rows=1,cols=999)",
                      "rms_norm(rows=37,cols=61)", "rms_norm(rows=5,cols=1)",
                      "rms_norm(rows=1,cols=1)",
                      "rms_norm(rows=9,cols=33,dtype=f16)",
                      "rms_norm(rows=9,cols=33,dtype=bf16)"}};
}

}  // namespace regatta
