#include "compiler/ops/epilogue.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "compiler/module/dtype.h"
#include "compiler/ops/op_types.h"

namespace regatta {
namespace {

// What the arguments ask for.
struct Epilogue {
  std::string dtype, out;
  std::string activation = "none";
  bool bias = false;
  bool scaled = false;  // integers times scale[channel]
};

absl::Status CheckIntegers(const Epilogue& e) {
  const bool stays = e.out == "i32" || e.out == "i8";
  if (!stays || e.activation == "none" || e.activation == "relu") {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "activation=", e.activation, " does not go with out_dtype=", e.out,
      ": its result is a fraction; choose out_dtype=f32, f16 or bf16"));
}

absl::StatusOr<Epilogue> EpilogueOf(const OpArguments& arguments) {
  Epilogue e{.dtype = arguments.Word("dtype")};
  if (arguments.Has("activation")) {
    e.activation = arguments.Word("activation");
  }
  const bool can_scale = arguments.Has("bias");
  e.bias = can_scale && arguments.Word("bias") == "yes";
  const std::string& asked = arguments.Word("out_dtype");
  if (e.dtype == "i8" && can_scale && asked != "auto" && asked != "i32") {
    e.out = asked;
    e.scaled = true;
  } else {
    ASSIGN_OR_RETURN(e.out, OutDType(arguments));
  }
  if (e.dtype == "i8") RETURN_IF_ERROR(CheckIntegers(e));
  return e;
}

}  // namespace

OpParameter ActivationParameter() {
  return WordParameter("activation",
                       "function of the result; gelu is the exact one, x times "
                       "the normal distribution",
                       "none", {"none", "relu", "gelu", "sigmoid", "tanh"});
}

OpParameter BiasParameter(std::string default_value) {
  return WordParameter("bias", "whether bias[channel] is added",
                       std::move(default_value), {"yes", "no"});
}

OpParameter ScaledOutDTypeParameter() {
  OpParameter parameter = OutDTypeParameter();
  parameter.help =
      "element type of the result; auto: dtype, i32 for i8; i8 with any other "
      "type: times scale[channel], rounded to nearest even and clamped for i8";
  parameter.words.push_back("i8");
  return parameter;
}

std::string Activated(const std::string& activation, const std::string& x) {
  if (activation == "relu") return absl::StrCat("max(", x, ", 0)");
  if (activation == "gelu") {
    return absl::Substitute("$0 * 0.5 * (1 + erf($0 * 0.70710678118654752))",
                            x);
  }
  if (activation == "none") return x;
  return absl::StrCat(activation, "(", x, ")");
}

absl::StatusOr<std::string> AddSum(const OpArguments& arguments,
                                   const SumText& sum, ExpressionText& text) {
  ASSIGN_OR_RETURN(const Epilogue e, EpilogueOf(arguments));
  if (!e.bias && !e.scaled && e.activation == "none") {
    text.Stage(sum.output, e.out, sum.shape, sum.indices, sum.value);
    return e.out;
  }
  const bool integers = e.dtype == "i8";
  text.Stage("acc", integers ? "i32" : "f32", sum.shape, sum.indices,
             sum.value);
  std::string x = Element("acc", sum.indices);
  if (e.bias) {
    x = absl::StrCat("(", x, " + ", Element("bias", {sum.channel}), ")");
    text.Tensor("bias", integers ? "i32" : e.dtype, {sum.channels});
  }
  if (e.scaled) {
    const bool requantise = e.out == "i8";
    if (requantise) x = Activated(e.activation, x);
    // The inner f32() rounds the product, so that no evaluation can round a
    // half differently.
    x = absl::StrCat("f32(f32(", x, ") * ", Element("scale", {sum.channel}),
                     ")");
    text.Tensor("scale", "f32", {sum.channels});
    x = requantise ? absl::StrCat("i8(round(", x, "))")
                   : Activated(e.activation, x);
  } else {
    x = Activated(e.activation, x);
  }
  text.Stage(sum.output, e.out, sum.shape, sum.indices, x);
  return e.out;
}

}  // namespace regatta
