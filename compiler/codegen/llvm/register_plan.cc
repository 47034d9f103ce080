#include "compiler/codegen/llvm/register_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace regatta::cpu {
namespace {

// A larger union of differently shaped accesses is better off in memory.
constexpr int64_t kMaxSlotElements = 64;

bool ValueTouchesRegisters(const loop::Program& program,
                           const loop::Value& value) {
  if (value.kind == loop::Value::Kind::kLoad &&
      program.buffers[value.buffer].scope == loop::Scope::kRegister) {
    return true;
  }
  return std::any_of(value.operands.begin(), value.operands.end(),
                     [&](const loop::ValuePtr& operand) {
                       return ValueTouchesRegisters(program, *operand);
                     });
}

bool TouchesRegisters(const loop::Program& program, const loop::Stmt& stmt) {
  if (stmt.kind == loop::Stmt::Kind::kStore) {
    return program.buffers[stmt.buffer].scope == loop::Scope::kRegister ||
           ValueTouchesRegisters(program, *stmt.value);
  }
  return std::any_of(stmt.body.begin(), stmt.body.end(),
                     [&](const loop::StmtPtr& child) {
                       return TouchesRegisters(program, *child);
                     });
}

}  // namespace

RegisterPlan::RegisterPlan(const loop::Program& program, const loop::Stmt& body,
                           const Chunker& chunks)
    : program_(program) {
  Walk(body, chunks);
  for (auto& [buffer, accesses] : accesses_) {
    Merge(buffer, std::move(accesses));
  }
  accesses_.clear();
}

void RegisterPlan::Walk(const loop::Stmt& stmt, const Chunker& chunks) {
  if (!TouchesRegisters(program_, stmt)) return;
  if (stmt.kind == loop::Stmt::Kind::kStore) {
    if (stmt.value->kind == loop::Value::Kind::kProducts) {
      WalkProducts(stmt);
      return;
    }
    Touch(stmt.buffer, stmt.offset);
    WalkValue(*stmt.value);
    return;
  }
  if (stmt.kind == loop::Stmt::Kind::kBlock) {
    for (const loop::StmtPtr& child : stmt.body) Walk(*child, chunks);
    return;
  }
  if (stmt.loop == loop::LoopKind::kVector) {
    for (const Lanes& lanes : chunks(stmt)) {
      lanes_ = lanes;
      vars_[stmt.var] = lanes.first;
      Walk(*stmt.body[0], chunks);
    }
    lanes_ = Lanes();
    vars_.erase(stmt.var);
    return;
  }
  const bool expanded =
      stmt.loop == loop::LoopKind::kUnrolled || stmt.unroll >= stmt.extent;
  // Register offsets do not depend on a loop that stays one.
  const int64_t iterations = expanded ? stmt.extent : 1;
  for (int64_t i = 0; i < iterations; ++i) {
    vars_[stmt.var] = i;
    Walk(*stmt.body[0], chunks);
  }
  vars_.erase(stmt.var);
}

void RegisterPlan::WalkValue(const loop::Value& value) {
  if (value.kind == loop::Value::Kind::kLoad) {
    Touch(value.buffer, value.offset);
  }
  for (const loop::ValuePtr& operand : value.operands) WalkValue(*operand);
}

void RegisterPlan::WalkProducts(const loop::Stmt& stmt) {
  const loop::ProductBlock& block = stmt.value->block;
  const auto touch = [&](int buffer, const Affine& offset, int count) {
    if (program_.buffers[buffer].scope != loop::Scope::kRegister) return;
    const int64_t first =
        offset.Evaluate([&](int var) { return vars_.at(var); });
    accesses_[buffer].push_back({first, count, count});
  };
  const loop::Value& a = *stmt.value->operands[0];
  const loop::Value& b = *stmt.value->operands[1];
  touch(stmt.buffer, stmt.offset, block.rows * block.cols);
  touch(a.buffer, a.offset, block.rows * block.depth);
  touch(b.buffer, b.offset, block.cols * block.depth);
}

void RegisterPlan::Touch(int buffer, const Affine& offset) {
  if (program_.buffers[buffer].scope != loop::Scope::kRegister) return;
  const int64_t first = offset.Evaluate([&](int var) { return vars_.at(var); });
  const int64_t step = lanes_.width > 1 ? offset.Coeff(lanes_.var) : 0;
  std::vector<Access>& accesses = accesses_[buffer];
  if (step == 1) {
    accesses.push_back({first, lanes_.count, lanes_.width});
    return;
  }
  const int64_t count = step == 0 ? 1 : lanes_.count;
  for (int64_t i = 0; i < count; ++i) {
    accesses.push_back({first + step * i, 1, 1});
  }
}

void RegisterPlan::Merge(int buffer, std::vector<Access> accesses) {
  std::sort(accesses.begin(), accesses.end(),
            [](const Access& a, const Access& b) {
              return std::tuple(a.first, a.count, a.width) <
                     std::tuple(b.first, b.count, b.width);
            });
  std::vector<Slot> slots;
  for (const Access& access : accesses) {
    if (slots.empty() ||
        access.first >= slots.back().first + slots.back().count) {
      slots.push_back({access.first, access.count, access.width});
      continue;
    }
    Slot& slot = slots.back();
    const bool same = access.first == slot.first &&
                      access.count == slot.count && access.width == slot.width;
    if (same) continue;
    slot.count = std::max(slot.count, access.first + access.count - slot.first);
    slot.width = std::max<int>(std::max(slot.width, access.width),
                               static_cast<int>(slot.count));
    if (slot.count > kMaxSlotElements) return;  // no slots: memory
  }
  slots_[buffer] = std::move(slots);
}

const RegisterPlan::Slot* RegisterPlan::Find(int buffer, int64_t first) const {
  const auto found = slots_.find(buffer);
  if (found == slots_.end()) return nullptr;
  auto it = std::upper_bound(
      found->second.begin(), found->second.end(), first,
      [](int64_t value, const Slot& slot) { return value < slot.first; });
  return it == found->second.begin() ? nullptr : &*std::prev(it);
}

}  // namespace regatta::cpu
