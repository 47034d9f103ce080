#include "compiler/ops/concat.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/op_types.h"
#include "compiler/ops/shapes.h"

namespace regatta {
namespace {

absl::Status CheckSizes(const std::vector<int64_t>& sizes, int64_t extent,
                        int64_t axis) {
  int64_t sum = 0;
  for (const int64_t size : sizes) sum += size;
  if (sum == extent) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("sizes add up to ", sum,
                                                 ", but dimension ", axis,
                                                 " of shape is ", extent));
}

// Reads of every input are padded: outside it, another one is selected.
absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const std::vector<int64_t> shape = arguments.Ints("shape");
  const std::vector<int64_t> sizes = arguments.Ints("sizes");
  const int64_t axis = arguments.Int("axis");
  RETURN_IF_ERROR(CheckAxes("axis", {axis}, shape.size()));
  RETURN_IF_ERROR(CheckSizes(sizes, shape[axis], axis));
  const std::vector<std::string> indices = Names("i", shape.size());
  const std::string& dtype = arguments.Word("dtype");
  ExpressionText text;
  for (size_t d = 0; d < shape.size(); ++d) text.Index(indices[d], shape[d]);
  int64_t begin = 0;
  std::string value, close;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const std::string name = absl::StrCat("X", k);
    std::vector<int64_t> input = shape;
    input[axis] = sizes[k];
    text.Tensor(name, dtype, input);
    std::vector<std::string> subscripts = indices;
    absl::StrAppend(&subscripts[axis], "-", begin);
    const std::string element = Element(name, subscripts);
    const std::string read =
        sizes.size() == 1 ? element : absl::StrCat("pad(", element, ", 0)");
    begin += sizes[k];
    if (k + 1 == sizes.size()) {
      absl::StrAppend(&value, read, close);
    } else {
      absl::StrAppend(&value, "select(", indices[axis], " < ", begin, ", ",
                      read, ", ");
      close += ")";
    }
  }
  // A selection is computed in a wide type: back to the tensor's.
  if (dtype == "i8") value = absl::StrCat("i8(", value, ")");
  text.Stage("Y", dtype, shape, indices, value);
  return text.Text();
}

}  // namespace

Op ConcatOp() {
  return {.name = "concat",
          .help = "tensors one behind the other along dimension axis",
          .parameters = {ListParameter("shape", "of the result, as in 4x16x3"),
                         {.name = "axis",
                          .help = "the dimension that is joined",
                          .min = 0,
                          .max = 15},
                         ListParameter("sizes",
                                       "each tensor's extent of that "
                                       "dimension, as in 3x5x8"),
                         DTypeParameter(/*integers=*/true)},
          .expression = Expression,
          .samples = {"concat(shape=32x48,axis=1,sizes=16x32)",
                      "concat(shape=13x21,axis=0,sizes=5x8)",
                      "concat(shape=3x16x7,axis=1,sizes=3x5x8)",
                      "concat(shape=5x37,axis=1,sizes=1x17x19)",
                      "concat(shape=7,axis=0,sizes=7)",
                      "concat(shape=5x37,axis=1,sizes=18x19,dtype=f16)",
                      "concat(shape=5x37,axis=1,sizes=18x19,dtype=bf16)",
                      "concat(shape=5x37,axis=0,sizes=2x3,dtype=i8)"}};
}

}  // namespace regatta
