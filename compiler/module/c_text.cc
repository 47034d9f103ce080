#include "compiler/module/c_text.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/strings.h"
#include "compiler/module/c_identifier.h"

namespace regatta {
namespace {

std::string_view CType(DType type) {
  switch (type) {
    case DType::kF64:
      return "double";
    case DType::kF32:
      return "float";
    case DType::kF16:
    case DType::kBF16:
      return "uint16_t";
    case DType::kI32:
      return "int32_t";
    case DType::kI8:
      return "int8_t";
    case DType::kBool:
      return "uint8_t";
  }
  CHECK(false) << "dtype " << static_cast<int>(type);
}

}  // namespace

std::string CommentText(std::string_view text) {
  std::string safe;
  for (char c : text) {
    if (!absl::ascii_isprint(c)) c = c == '\n' || c == '\t' ? ' ' : '?';
    const char last = safe.empty() ? ' ' : safe.back();
    if ((last == '*' && c == '/') || (last == '/' && c == '*')) safe += ' ';
    safe += c;
  }
  return safe;
}

std::vector<TensorParameter> TensorParameters(const Module& module,
                                              std::set<std::string> taken) {
  std::vector<TensorParameter> parameters;
  for (const ModuleBuffer& buffer : module.buffers) {
    const bool is_input = buffer.role == BufferRole::kInput;
    if (!is_input && buffer.role != BufferRole::kOutput) continue;
    std::string name = ToCIdentifier(buffer.name);
    if (absl::StartsWith(name, ToAbsl(kGuardPrefix))) {
      name = absl::StrCat("x_", name);
    }
    while (!taken.insert(name).second) name += '_';
    parameters.push_back({&buffer, std::move(name),
                          absl::StrCat(is_input ? "const " : "",
                                       std::string(CType(buffer.dtype)))});
  }
  return parameters;
}

std::string ParameterList(const std::vector<TensorParameter>& parameters) {
  return absl::StrJoin(
      parameters, ", ", [](std::string* out, const TensorParameter& parameter) {
        absl::StrAppend(out, parameter.c_type, " *", parameter.name);
      });
}

std::string ParameterComment(const TensorParameter& parameter,
                             std::string_view more) {
  const ModuleBuffer& buffer = *parameter.buffer;
  const char* note = buffer.dtype == DType::kF16    ? " (IEEE binary16 bits)"
                     : buffer.dtype == DType::kBF16 ? " (bfloat16 bits)"
                                                    : "";
  return absl::StrCat(" *   ", parameter.name, ": ",
                      buffer.role == BufferRole::kInput ? "input" : "output",
                      ", ", std::string(DTypeName(buffer.dtype)), "[",
                      absl::StrJoin(buffer.shape, ","), "]", note, ", ",
                      buffer.bytes, " bytes", std::string(more), "\n");
}

std::string OriginComment(const Module& module, std::string_view grade,
                          std::string_view reason) {
  return absl::StrCat(" * workload  ", CommentText(module.workload), "\n",
                      " * target    ", CommentText(module.target), "\n",
                      " * schedule  ", CommentText(module.schedule), "\n",
                      " * chosen    ", CommentText(grade), ": ",
                      CommentText(reason), "\n", " * compiler  ",
                      CommentText(module.compiler_version), "\n");
}

std::string HeaderBegin(std::string_view name) {
  const std::string guard = absl::StrCat(
      ToAbsl(kGuardPrefix), absl::AsciiStrToUpper(ToAbsl(name)), "_H");
  return absl::StrCat("#ifndef ", guard, "\n#define ", guard,
                      "\n\n#include <stddef.h>\n#include <stdint.h>\n\n",
                      "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
}

std::string_view HeaderEnd() {
  return "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

}  // namespace regatta
