#include "compiler/ops/matmul.h"

#include "base/status_macros.h"
#include "compiler/ops/epilogue.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/op_types.h"

namespace regatta {
namespace {

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const int64_t m = arguments.Int("m"), n = arguments.Int("n"),
                k = arguments.Int("k");
  const std::string& dtype = arguments.Word("dtype");
  ExpressionText text;
  text.Index("i", m);
  text.Index("j", n);
  text.Index("k", k);
  text.Tensor("A", dtype, {m, k});
  text.Tensor("B", dtype, {k, n});
  RETURN_IF_ERROR(AddSum(arguments,
                         {.output = "C",
                          .indices = {"i", "j"},
                          .shape = {m, n},
                          .value = "sum(k) A[i,k] * B[k,j]"},
                         text)
                      .status());
  return text.Text();
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
                     OutDTypeParameter(),
                     ActivationParameter()},
      .expression = Expression,
      .samples = {"matmul(m=64,n=64,k=64)", "matmul(m=127,n=193,k=511)",
                  "matmul(m=1,n=1,k=1)", "matmul(m=1,n=129,k=65)",
                  "matmul(m=33,n=1,k=70)", "matmul(m=17,n=19,k=23,dtype=f16)",
                  "matmul(m=17,n=19,k=23,dtype=bf16,out_dtype=f32)",
                  "matmul(m=17,n=19,k=23,dtype=i8)",
                  "matmul(m=9,n=35,k=13,activation=gelu)",
                  "matmul(m=9,n=21,k=13,dtype=f16,activation=relu)",
                  "matmul(m=9,n=21,k=13,dtype=bf16,activation=tanh)",
                  "matmul(m=9,n=21,k=13,dtype=i8,activation=relu)"}};
}

}  // namespace regatta
