#include "compiler/ops/op_types.h"

#include "absl/strings/str_cat.h"
#include "compiler/module/dtype.h"

namespace regatta {

OpParameter WordParameter(std::string name, std::string help,
                          std::string default_value,
                          std::vector<std::string> words) {
  return {.name = std::move(name),
          .help = std::move(help),
          .default_value = std::move(default_value),
          .kind = OpParameter::Kind::kWord,
          .words = std::move(words)};
}

OpParameter ListParameter(std::string name, std::string help, int64_t min) {
  return {.name = std::move(name),
          .help = std::move(help),
          .kind = OpParameter::Kind::kIntegers,
          .min = min};
}

void AppendParameters(Op& op, std::vector<OpParameter> more) {
  for (OpParameter& parameter : more) {
    op.parameters.push_back(std::move(parameter));
  }
}

OpParameter DTypeParameter(bool integers) {
  OpParameter parameter = WordParameter("dtype", "element type of the operands",
                                        "f32", {"f32", "f16", "bf16"});
  if (integers) parameter.words.push_back("i8");
  return parameter;
}

OpParameter OutDTypeParameter() {
  return WordParameter("out_dtype",
                       "element type of the result; auto: dtype, i32 for i8",
                       "auto", {"auto", "f32", "f16", "bf16", "i32"});
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
