#include "compiler/ops/slice.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/op_types.h"
#include "compiler/ops/shapes.h"

namespace regatta {
namespace {

// `step` left out: 1 everywhere.
std::vector<int64_t> Steps(const OpArguments& arguments, size_t rank) {
  std::vector<int64_t> steps = arguments.Ints("step");
  if (steps == std::vector<int64_t>{1}) steps.assign(rank, 1);
  return steps;
}

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const std::vector<int64_t> shape = arguments.Ints("shape");
  const std::vector<int64_t> begin = arguments.Ints("begin");
  const std::vector<int64_t> size = arguments.Ints("size");
  const std::vector<int64_t> step = Steps(arguments, shape.size());
  RETURN_IF_ERROR(CheckRank("begin", begin, shape.size()));
  RETURN_IF_ERROR(CheckRank("size", size, shape.size()));
  RETURN_IF_ERROR(CheckRank("step", step, shape.size()));
  const std::vector<std::string> indices = Names("i", shape.size());
  const std::string& dtype = arguments.Word("dtype");
  ExpressionText text;
  std::vector<std::string> subscripts;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t last = begin[d] + (size[d] - 1) * step[d];
    if (last >= shape[d]) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", d, " would be read up to element ", last,
                       " of ", shape[d], " (begin ", begin[d], ", size ",
                       size[d], ", step ", step[d], ")"));
    }
    text.Index(indices[d], size[d]);
    subscripts.push_back(absl::StrCat(indices[d], "*", step[d], "+", begin[d]));
  }
  text.Tensor("X", dtype, shape);
  text.Stage("Y", dtype, size, indices, Element("X", subscripts));
  return text.Text();
}

}  // namespace

Op SliceOp() {
  OpParameter step = ListParameter("step", "distance of the elements taken");
  step.default_value = "1";
  step.max = 1 << 20;
  OpParameter begin =
      ListParameter("begin", "the first element of each dimension", 0);
  return {.name = "slice",
          .help =
              "a regular part of X: begin + step * (0 .. size-1) of every "
              "dimension",
          .parameters = {ListParameter("shape", "of X, as in 32x64"), begin,
                         ListParameter("size", "of the result, as in 8x16"),
                         step, DTypeParameter(/*integers=*/true)},
          .expression = Expression,
          .samples = {"slice(shape=64x64,begin=8x16,size=32x32)",
                      "slice(shape=9x37,begin=3x1,size=5x35)",
                      "slice(shape=9x37,begin=0x2,size=4x11,step=2x3)",
                      "slice(shape=3x5x7,begin=1x0x2,size=1x5x3)",
                      "slice(shape=9,begin=8,size=1)",
                      "slice(shape=9x37,begin=3x1,size=5x35,dtype=f16)",
                      "slice(shape=9x37,begin=3x1,size=5x35,dtype=bf16)",
                      "slice(shape=9x37,begin=3x1,size=5x35,dtype=i8)"}};
}

}  // namespace regatta
