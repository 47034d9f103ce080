#include "compiler/ops/transpose.h"

#include "base/status_macros.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/op_types.h"
#include "compiler/ops/shapes.h"

namespace regatta {
namespace {

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const std::vector<int64_t> shape = arguments.Ints("shape");
  const std::vector<int64_t> perm = arguments.Ints("perm");
  RETURN_IF_ERROR(CheckRank("perm", perm, shape.size()));
  RETURN_IF_ERROR(CheckAxes("perm", perm, shape.size()));
  const std::vector<std::string> indices = Names("i", shape.size());
  const std::string& dtype = arguments.Word("dtype");
  ExpressionText text;
  std::vector<int64_t> result;
  std::vector<std::string> result_indices;
  for (const int64_t axis : perm) {
    text.Index(indices[axis], shape[axis]);
    result.push_back(shape[axis]);
    result_indices.push_back(indices[axis]);
  }
  text.Tensor("X", dtype, shape);
  text.Stage("Y", dtype, result, result_indices, Element("X", indices));
  return text.Text();
}

}  // namespace

Op TransposeOp() {
  return {.name = "transpose",
          .help = "X with its dimensions in the order perm",
          .parameters = {ListParameter("shape", "of X, as in 32x64x16"),
                         ListParameter("perm",
                                       "which dimension of X each dimension of "
                                       "the result is, as in 2x0x1",
                                       0),
                         DTypeParameter(/*integers=*/true)},
          .expression = Expression,
          .samples = {"transpose(shape=64x48,perm=1x0)",
                      "transpose(shape=5x7x19,perm=2x0x1)",
                      "transpose(shape=5x7x19,perm=0x2x1)",
                      "transpose(shape=3x4x5x6,perm=3x1x2x0)",
                      "transpose(shape=33,perm=0)",
                      "transpose(shape=17x35,perm=1x0,dtype=f16)",
                      "transpose(shape=17x35,perm=1x0,dtype=bf16)",
                      "transpose(shape=17x35,perm=1x0,dtype=i8)"}};
}

}  // namespace regatta
