#include "compiler/ops/matmul.h"

#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "compiler/ops/op_types.h"

namespace regatta {
namespace {

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  ASSIGN_OR_RETURN(const std::string out, OutDType(arguments));
  return absl::Substitute(
      "C[i,j] = sum(k) A[i,k] * B[k,j] "
      "where i=$0, j=$1, k=$2, dtype=$3, C=$4[$0,$1]",
      arguments.Int("m"), arguments.Int("n"), arguments.Int("k"),
      arguments.Word("dtype"), out);
}

}  // namespace

Op MatmulOp() {
  return {
      .name = "matmul",
      .help = "matrix product C[m,n] = A[m,k] * B[k,n]",
      .parameters = {{.name = "m", .help = "rows of A and C"},
                     {.name = "n", .help = "columns of B and C"},
                     {.name = "k", .help = "columns of A, rows of B"},
                     DTypeParameter(/*integers=*/true),
                     OutDTypeParameter()},
      .expression = Expression,
      .samples = {"matmul(m=64,n=64,k=64)", "matmul(m=127,n=193,k=511)",
                  "matmul(m=1,n=1,k=1)", "matmul(m=1,n=129,k=65)",
                  "matmul(m=33,n=1,k=70)", "matmul(m=17,n=19,k=23,dtype=f16)",
                  "matmul(m=17,n=19,k=23,dtype=bf16,out_dtype=f32)",
                  "matmul(m=17,n=19,k=23,dtype=i8)"}};
}

}  // namespace regatta
