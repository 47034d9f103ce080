#include "compiler/ops/op_types.h"

#include "absl/strings/str_cat.h"
#include "compiler/module/dtype.h"

namespace regatta {

OpParameter DTypeParameter(bool integers) {
  OpParameter parameter{.name = "dtype",
                        .help = "element type of the operands",
                        .default_value = "f32",
                        .is_integer = false,
                        .words = {"f32", "f16", "bf16"}};
  if (integers) parameter.words.push_back("i8");
  return parameter;
}

OpParameter OutDTypeParameter() {
  return {.name = "out_dtype",
          .help = "element type of the result; auto: dtype, i32 for i8",
          .default_value = "auto",
          .is_integer = false,
          .words = {"auto", "f32", "f16", "bf16", "i32"}};
}

absl::StatusOr<std::string> OutDType(const OpArguments& arguments) {
  const std::string& dtype = arguments.Word("dtype");
  const std::string& out = arguments.Word("out_dtype");
  const bool is_float = IsFloat(*ParseTensorDType(dtype));
  if (out == "auto") return is_float ? dtype : "i32";
  if (IsFloat(*ParseTensorDType(out)) != is_float) {
    return absl::InvalidArgumentError(
        absl::StrCat("out_dtype=", out, " does not go with dtype=", dtype,
                     "; choose ", is_float ? "f32, f16 or bf16" : "i32"));
  }
  return out;
}

}  // namespace regatta
