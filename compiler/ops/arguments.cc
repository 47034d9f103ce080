#include "absl/strings/numbers.h"
#include "base/check.h"
#include "compiler/ops/op.h"

namespace regatta {

int64_t OpArguments::Int(std::string_view name) const {
  int64_t value = 0;
  CHECK(absl::SimpleAtoi(Word(name), &value)) << name << " is no integer";
  return value;
}

const std::string& OpArguments::Word(std::string_view name) const {
  const auto it = values_.find(std::string(name));
  CHECK(it != values_.end()) << "no parameter " << name;
  return it->second;
}

}  // namespace regatta
