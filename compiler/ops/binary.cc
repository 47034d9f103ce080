#include "compiler/ops/binary.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ops/epilogue.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/op_types.h"

namespace regatta {
namespace {

// The shape that two shapes meet in: aligned at their last dimensions, where
// one of them is 1 or absent, the other's.
absl::StatusOr<std::vector<int64_t>> Broadcast(const std::vector<int64_t>& a,
                                               const std::vector<int64_t>& b) {
  std::vector<int64_t> shape(std::max(a.size(), b.size()), 1);
  const auto extent = [&](const std::vector<int64_t>& of, size_t d) {
    const size_t missing = shape.size() - of.size();
    return d < missing ? 1 : of[d - missing];
  };
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t left = extent(a, d), right = extent(b, d);
    if (left != right && left != 1 && right != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dimension ", d, " of the result would be ", left, " for a and ",
          right, " for b; they must be equal, or one of them 1"));
    }
    shape[d] = std::max(left, right);
  }
  return shape;
}

// An element of a tensor whose dimensions of 1 are broadcast.
std::string BroadcastElement(const char* tensor,
                             const std::vector<int64_t>& shape,
                             const std::vector<std::string>& indices) {
  std::vector<std::string> subscripts;
  for (size_t d = 0; d < shape.size(); ++d) {
    subscripts.push_back(
        shape[d] == 1 ? "0" : indices[indices.size() - shape.size() + d]);
  }
  return Element(tensor, subscripts);
}

std::string Combined(const std::string& kind, const std::string& a,
                     const std::string& b) {
  if (kind == "add") return absl::StrCat(a, " + ", b);
  if (kind == "sub") return absl::StrCat(a, " - ", b);
  if (kind == "mul") return absl::StrCat(a, " * ", b);
  if (kind == "div") return absl::StrCat(a, " / ", b);
  return absl::StrCat(kind, "(", a, ", ", b, ")");
}

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const std::vector<int64_t> a = arguments.Ints("a"), b = arguments.Ints("b");
  ASSIGN_OR_RETURN(const std::vector<int64_t> shape, Broadcast(a, b));
  const std::string& dtype = arguments.Word("dtype");
  const std::string& kind = arguments.Word("kind");
  const std::vector<std::string> indices = Names("i", shape.size());
  ExpressionText text;
  for (size_t d = 0; d < shape.size(); ++d) text.Index(indices[d], shape[d]);
  text.Tensor("A", dtype, a);
  text.Tensor("B", dtype, b);
  if (kind == "div" && dtype == "i8") {
    return absl::InvalidArgumentError(
        "kind=div does not go with dtype=i8: integers are not divided");
  }
  RETURN_IF_ERROR(
      AddSum(arguments,
             {.output = "Y",
              .indices = indices,
              .shape = shape,
              .value = Combined(kind, BroadcastElement("A", a, indices),
                                BroadcastElement("B", b, indices))},
             text)
          .status());
  return text.Text();
}

}  // namespace

Op BinaryOperatorOp() {
  return {
      .name = "binary",
      .help =
          "A and B element by element; shapes are aligned at their last "
          "dimensions and dimensions of 1 are repeated",
      .parameters = {ListParameter("a", "shape of A, as in 32x64"),
                     ListParameter("b", "shape of B"),
                     WordParameter("kind", "what is computed", "add",
                                   {"add", "sub", "mul", "div", "max", "min"}),
                     ActivationParameter(), DTypeParameter(/*integers=*/true),
                     OutDTypeParameter()},
      .expression = Expression,
      .samples = {"binary(a=64x128,b=64x128)",
                  "binary(a=5x7x33,b=33,kind=mul,activation=relu)",
                  "binary(a=9x1,b=1x21,kind=sub)",
                  "binary(a=33,b=6x5x1,kind=max)", "binary(a=1,b=1,kind=div)",
                  "binary(a=9x33,b=33,kind=div,dtype=f16)",
                  "binary(a=9x33,b=9x1,kind=min,activation=gelu,"
                  "dtype=bf16)",
                  "binary(a=9x33,b=9x33,dtype=i8)"}};
}

}  // namespace regatta
