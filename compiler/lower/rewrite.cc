#include "compiler/lower/rewrite.h"

#include <memory>
#include <utility>
#include <vector>

namespace regatta::loop {
ValuePtr RewriteValue(const ValuePtr& value,
                      const std::function<ValuePtr(ValuePtr)>& change) {
  std::vector<ValuePtr> operands;
  bool changed = false;
  for (const ValuePtr& operand : value->operands) {
    operands.push_back(RewriteValue(operand, change));
    changed = changed || operands.back() != operand;
  }
  if (!changed) return change(value);
  auto copy = std::make_shared<Value>(*value);
  copy->operands = std::move(operands);
  return change(std::move(copy));
}

}  // namespace regatta::loop
