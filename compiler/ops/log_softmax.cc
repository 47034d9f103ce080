#include "compiler/ops/log_softmax.h"

#include "absl/strings/substitute.h"
#include "compiler/ops/op_types.h"

namespace regatta {
namespace {

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  return absl::Substitute(
      "M[i] = max(j) X[i,j]; S[i] = sum(j) exp(X[i,j] - M[i]); "
      "L[i] = log(S[i]); Y[i,j] = X[i,j] - M[i] - L[i] "
      "where i=$0, j=$1, dtype=$2, M=f32[$0], S=f32[$0], L=f32[$0]",
      arguments.Int("rows"), arguments.Int("cols"), arguments.Word("dtype"));
}

}  // namespace

Op LogSoftmaxOp() {
  return {
      .name = "log_softmax",
      .help = "logarithm of the softmax of every row of X[rows,cols]",
      .parameters = {{.name = "rows", .help = "rows"},
                     {.name = "cols", .help = "columns, summed over"},
                     DTypeParameter(/*integers=*/false)},
      .expression = Expression,
      .samples = {
          "log_softmax(rows=64,cols=128)", "log_softmax(rows=1,cols=1000)",
          "log_softmax(rows=37,cols=61)", "log_softmax(rows=5,cols=1)",
          "log_softmax(rows=1,cols=1)", "log_softmax(rows=9,cols=33,dtype=f16)",
          "log_softmax(rows=9,cols=33,dtype=bf16)"}};
}

}  // namespace regatta
