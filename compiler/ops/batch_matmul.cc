#include "compiler/ops/batch_matmul.h"

#include "base/status_macros.h"
#include "compiler/ops/epilogue.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/op_types.h"

namespace regatta {
namespace {

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const int64_t b = arguments.Int("b"), m = arguments.Int("m"),
                n = arguments.Int("n"), k = arguments.Int("k");
  const std::string& dtype = arguments.Word("dtype");
  ExpressionText text;
  text.Index("b", b);
  text.Index("i", m);
  text.Index("j", n);
  text.Index("k", k);
  text.Tensor("A", dtype, {b, m, k});
  text.Tensor("B", dtype, {b, k, n});
  RETURN_IF_ERROR(AddSum(arguments,
                         {.output = "C",
                          .indices = {"b", "i", "j"},
                          .shape = {b, m, n},
                          .value = "sum(k) A[b,i,k] * B[b,k,j]"},
                         text)
                      .status());
  return text.Text();
}

}  // namespace

Op BatchMatmulOp() {
  return {.name = "batch_matmul",
          .help = "b matrix products C[b,m,n] = A[b,m,k] * B[b,k,n]",
          .parameters = {{.name = "b", .help = "products"},
                         {.name = "m", .help = "rows of A and C"},
                         {.name = "n", .help = "columns of B and C"},
                         {.name = "k", .help = "columns of A, rows of B"},
                         DTypeParameter(/*integers=*/true),
                         OutDTypeParameter(),
                         ActivationParameter()},
          .expression = Expression,
          .samples = {"batch_matmul(b=2,m=16,n=32,k=16)",
                      "batch_matmul(b=3,m=13,n=37,k=9)",
                      "batch_matmul(b=5,m=1,n=19,k=23)",
                      "batch_matmul(b=4,m=11,n=1,k=6)",
                      "batch_matmul(b=1,m=1,n=1,k=1)",
                      "batch_matmul(b=3,m=7,n=21,k=9,dtype=f16)",
                      "batch_matmul(b=3,m=7,n=21,k=9,dtype=bf16,"
                      "activation=relu)",
                      "batch_matmul(b=3,m=7,n=21,k=9,dtype=i8)"}};
}

}  // namespace regatta
