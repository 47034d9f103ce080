#include "compiler/ops/softmax.h"

#include "absl/strings/substitute.h"
#include "compiler/ops/op_types.h"

namespace regatta {
namespace {

// What lies between stays in f32: a sum of many f16 or bf16 exponentials would
// lose its small terms.
absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  return absl::Substitute(
      "M[i] = max(j) X[i,j]; E[i,j] = exp(X[i,j] - M[i]); "
      "S[i] = sum(j) E[i,j]; Y[i,j] = E[i,j] / S[i] "
      "where i=$0, j=$1, dtype=$2, M=f32[$0], E=f32[$0,$1], S=f32[$0]",
      arguments.Int("rows"), arguments.Int("cols"), arguments.Word("dtype"));
}

}  // namespace

Op SoftmaxOp() {
  return {
      .name = "softmax",
      .help = "softmax of every row of X[rows,cols]",
      .parameters = {{.name = "rows", .help = "rows"},
                     {.name = "cols", .help = "columns, summed over"},
                     DTypeParameter(/*integers=*/false)},
      .expression = Expression,
      .samples = {"softmax(rows=64,cols=128)", "softmax(rows=1,cols=1000)",
                  "softmax(rows=37,cols=61)", "softmax(rows=5,cols=1)",
                  "softmax(rows=1,cols=1)", "softmax(rows=9,cols=33,dtype=f16)",
                  "softmax(rows=9,cols=33,dtype=bf16)"}};
}

}  // namespace regatta
