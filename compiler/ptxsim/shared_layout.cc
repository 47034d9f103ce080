#include "compiler/ptxsim/shared_layout.h"

#include <algorithm>

namespace regatta::ptxsim {
namespace {

// Deeper calls are the decoder's to refuse.
constexpr int kMaxCallDepth = 64;

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Calls f(operand) for `operand` and those within it.
template <typename F>
void ForEachOperand(const Operand& operand, const F& f) {
  f(operand);
  for (const Operand& element : operand.elements) ForEachOperand(element, f);
}

}  // namespace

SharedLayout SharedLayout::Of(const RawModule& module,
                              const RawFunction& entry) {
  SharedLayout layout;
  layout.Visit(module, entry, 0);
  if (layout.dynamic_) {
    layout.static_bytes_ =
        AlignUp(layout.static_bytes_, layout.dynamic_alignment_);
  }
  return layout;
}

void SharedLayout::Visit(const RawModule& module, const RawFunction& function,
                         int depth) {
  if (depth > kMaxCallDepth || !visited_.insert(&function).second) return;
  for (size_t i = 0; i < function.variables.size(); ++i) {
    const Variable& variable = function.variables[i];
    if (variable.space == Space::kShared) {
      Add(&function, static_cast<int>(i), variable);
    }
  }
  for (const Statement& statement : function.statements) {
    for (const Operand& operand : statement.operands) {
      ForEachOperand(operand, [&](const Operand& part) {
        if (part.kind == Operand::Kind::kVariable && part.id < 0) {
          const Variable& variable = module.variables[~part.id];
          if (variable.space == Space::kShared) {
            Add(nullptr, part.id, variable);
          }
        } else if (part.kind == Operand::Kind::kName &&
                   statement.opcode == "call") {
          const RawFunction* callee = module.FindFunction(part.name);
          if (callee != nullptr) Visit(module, *callee, depth + 1);
        }
      });
    }
  }
}

void SharedLayout::Add(const RawFunction* owner, int id,
                       const Variable& variable) {
  if (variable.external || variable.bytes == 0) {
    dynamic_ = true;
    dynamic_alignment_ =
        std::max<uint64_t>(dynamic_alignment_, variable.alignment);
    return;
  }
  if (addresses_.contains({owner, id})) return;
  static_bytes_ = AlignUp(static_bytes_, variable.alignment);
  addresses_[{owner, id}] = static_bytes_;
  static_bytes_ += variable.bytes;
}

uint64_t SharedLayout::Address(const RawFunction& function, int id) const {
  const auto found = addresses_.find({id < 0 ? nullptr : &function, id});
  // The dynamic array starts where the static variables end.
  return found == addresses_.end() ? static_bytes_ : found->second;
}

}  // namespace regatta::ptxsim
