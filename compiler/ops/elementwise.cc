#include "compiler/ops/elementwise.h"

#include "absl/strings/str_cat.h"
#include "compiler/ops/epilogue.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/op_types.h"

namespace regatta {
namespace {

std::string Apply(const std::string& function, const std::string& x) {
  if (function == "neg") return absl::StrCat("-", x);
  if (function == "square") return absl::StrCat(x, " * ", x);
  if (function == "silu") return absl::StrCat(x, " * sigmoid(", x, ")");
  if (function == "relu" || function == "gelu") return Activated(function, x);
  return absl::StrCat(function, "(", x, ")");
}

bool UsesTwice(const std::string& function) {
  return function == "square" || function == "silu" || function == "gelu";
}

// One expression, so that the chain is one pass over memory; a function that
// needs its argument more than once gets a stage of its own for it, lest text
// and work double with every one of them.
absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const std::vector<int64_t> shape = arguments.Ints("shape");
  const std::string& dtype = arguments.Word("dtype");
  const std::vector<std::string> indices = Names("i", shape.size());
  ExpressionText text;
  for (size_t d = 0; d < shape.size(); ++d) text.Index(indices[d], shape[d]);
  text.Tensor("X", dtype, shape);
  std::string value = Element("X", indices);
  int stages = 0;
  bool primary = true;
  for (const std::string& function : arguments.Words("chain")) {
    if (!primary && UsesTwice(function)) {
      const std::string name = absl::StrCat("T", stages++);
      text.Stage(name, "f32", shape, indices, value);
      value = Element(name, indices);
    } else if (!primary) {
      value = absl::StrCat("(", value, ")");
    }
    value = Apply(function, value);
    primary = false;
  }
  text.Stage("Y", dtype, shape, indices, value);
  return text.Text();
}

}  // namespace

Op ElementwiseOp() {
  return {.name = "elementwise",
          .help = "a chain of functions of every element, the first one first",
          .parameters = {ListParameter("shape", "of X and Y, as in 32x64"),
                         {.name = "chain",
                          .help = "functions, as in square+exp",
                          .default_value = "relu",
                          .kind = OpParameter::Kind::kWords,
                          .words = {"relu", "gelu", "sigmoid", "tanh", "silu",
                                    "exp", "log", "sqrt", "rsqrt", "abs", "neg",
                                    "square", "erf", "floor", "round"}},
                         DTypeParameter(/*integers=*/false)},
          .expression = Expression,
          .samples = {"elementwise(shape=64x128)",
                      "elementwise(shape=3x5x37,chain=gelu)",
                      "elementwise(shape=1001,chain=square+neg+exp)",
                      "elementwise(shape=7x19,chain=tanh+silu+abs+square)",
                      "elementwise(shape=1,chain=sigmoid)",
                      "elementwise(shape=9x33,chain=silu,dtype=f16)",
                      "elementwise(shape=9x33,chain=abs+sqrt,dtype=bf16)"}};
}

}  // namespace regatta
