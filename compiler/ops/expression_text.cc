#include "compiler/ops/expression_text.h"

#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/expr/words.h"

namespace regatta {

void ExpressionText::Index(std::string_view name, int64_t extent) {
  bindings_.push_back(absl::StrCat(std::string(name), "=", extent));
}

void ExpressionText::Tensor(std::string_view name, std::string_view dtype,
                            const std::vector<int64_t>& shape) {
  bindings_.push_back(absl::StrCat(std::string(name), "=", std::string(dtype),
                                   "[", absl::StrJoin(shape, ","), "]"));
}

void ExpressionText::Stage(std::string_view tensor, std::string_view dtype,
                           const std::vector<int64_t>& shape,
                           const std::vector<std::string>& indices,
                           std::string_view value) {
  stages_.push_back(
      absl::StrCat(Element(tensor, indices), " = ", std::string(value)));
  Tensor(tensor, dtype, shape);
}

std::string ExpressionText::Text() const {
  return absl::StrCat(absl::StrJoin(stages_, "; "), " where ",
                      absl::StrJoin(bindings_, ", "));
}

std::string Element(std::string_view tensor,
                    const std::vector<std::string>& subscripts) {
  return absl::StrCat(std::string(tensor), "[", absl::StrJoin(subscripts, ","),
                      "]");
}

std::vector<std::string> Names(std::string_view prefix, size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    std::string name = absl::StrCat(std::string(prefix), i);
    // Such as "i8", the type.
    if (IsReserved(name)) name += "_";
    names.push_back(std::move(name));
  }
  return names;
}

std::string Real(double value) {
  char text[40];
  const std::to_chars_result end = std::to_chars(text, std::end(text), value);
  return std::string(text, end.ptr);
}

}  // namespace regatta
