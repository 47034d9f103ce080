#include "compiler/ops/dense.h"

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
  text.Tensor("X", dtype, {m, k});
  text.Tensor("W", dtype, {k, n});
  RETURN_IF_ERROR(AddSum(arguments,
                         {.output = "Y",
                          .indices = {"i", "j"},
                          .shape = {m, n},
                          .value = "sum(k) X[i,k] * W[k,j]",
                          .channel = "j",
                          .channels = n},
                         text)
                      .status());
  return text.Text();
}

}  // namespace

Op DenseOp() {
  return {.name = "dense",
          .help = "layer Y[m,n] = activation(X[m,k] * W[k,n] + bias[n])",
          .parameters = {{.name = "m", .help = "rows of X and Y"},
                         {.name = "n", .help = "columns of W and Y"},
                         {.name = "k", .help = "columns of X, rows of W"},
                         ActivationParameter(),
                         BiasParameter("yes"),
                         DTypeParameter(/*integers=*/true),
                         ScaledOutDTypeParameter()},
          .expression = Expression,
          .samples = {
              "dense(m=32,n=48,k=64,activation=relu)", "dense(m=13,n=37,k=29)",
              "dense(m=1,n=65,k=33,activation=gelu)",
              "dense(m=9,n=21,k=17,activation=sigmoid,bias=no)",
              "dense(m=9,n=21,k=17,activation=tanh)",
              "dense(m=5,n=1,k=7,activation=relu)", "dense(m=1,n=1,k=1)",
              "dense(m=9,n=35,k=17,activation=gelu,dtype=f16)",
              "dense(m=9,n=35,k=17,activation=relu,dtype=bf16,"
              "out_dtype=f32)",
              "dense(m=9,n=35,k=17,activation=relu,dtype=i8)",
              "dense(m=9,n=35,k=17,dtype=i8,out_dtype=i8)",
              "dense(m=9,n=35,k=17,activation=relu,bias=no,dtype=i8,"
              "out_dtype=i8)",
              "dense(m=9,n=35,k=17,activation=gelu,dtype=i8,"
              "out_dtype=f32)"}};
}

}  // namespace regatta
