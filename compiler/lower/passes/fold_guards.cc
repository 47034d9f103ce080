#include "compiler/lower/passes/fold_guards.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/lower/rewrite.h"

namespace regatta::loop {
namespace {

// Those of `guards` that can fail; absent when they never hold together.
// `known`: what holds here already.
std::optional<std::vector<Guard>> Fold(const std::vector<Guard>& guards,
                                       const std::vector<Guard>& known,
                                       const LoopExtents& loops) {
  const auto extent = [&](int var) { return loops.at(var); };
  std::vector<Guard> kept;
  for (const Guard& guard : guards) {
    const int64_t min = guard.form.Min(extent);
    const int64_t max = guard.form.Max(extent);
    if (max < 0 || min >= guard.bound) return std::nullopt;
    const bool holds =
        (min >= 0 && max < guard.bound) ||
        std::any_of(known.begin(), known.end(), [&](const Guard& other) {
          return other.form == guard.form && other.bound <= guard.bound;
        });
    if (!holds) kept.push_back(guard);
  }
  return kept;
}

ValuePtr FoldLoad(ValuePtr load, const std::vector<Guard>& known,
                  const LoopExtents& loops) {
  std::optional<std::vector<Guard>> kept = Fold(load->guards, known, loops);
  if (!kept) return Const(load->constant, load->dtype);
  if (kept->size() == load->guards.size()) return load;
  auto copy = std::make_shared<Value>(*load);
  copy->guards = *std::move(kept);
  return copy;
}

// `known`: the guards of the statements around `stmt`.
StmtPtr FoldIn(const StmtPtr& stmt, const std::vector<Guard>& known,
               LoopExtents& loops) {
  auto copy = std::make_shared<Stmt>(*stmt);
  bool changed = false;
  std::vector<Guard> inside = known;
  if (stmt->kind == Stmt::Kind::kStore) {
    copy->value = RewriteValue(stmt->value, [&](ValuePtr node) {
      if (node->kind != Value::Kind::kLoad) return node;
      return FoldLoad(std::move(node), known, loops);
    });
    changed = copy->value != stmt->value;
  } else if (stmt->kind == Stmt::Kind::kIf) {
    std::optional<std::vector<Guard>> kept = Fold(stmt->guards, known, loops);
    if (!kept) return Block({});
    if (kept->empty()) return FoldIn(stmt->body[0], known, loops);
    changed = kept->size() != stmt->guards.size();
    inside.insert(inside.end(), kept->begin(), kept->end());
    copy->guards = *std::move(kept);
  } else if (stmt->kind == Stmt::Kind::kFor ||
             stmt->kind == Stmt::Kind::kLet) {
    loops[stmt->var] = stmt->extent;
  }
  for (IntrinsicOperand& operand : copy->operands) {
    std::optional<std::vector<Guard>> kept = Fold(operand.guards, known, loops);
    if (!kept || kept->size() == operand.guards.size()) continue;
    operand.guards = *std::move(kept);
    changed = true;
  }
  for (StmtPtr& child : copy->body) {
    StmtPtr folded = FoldIn(child, inside, loops);
    changed = changed || folded != child;
    child = std::move(folded);
  }
  if (stmt->kind == Stmt::Kind::kFor || stmt->kind == Stmt::Kind::kLet) {
    loops.erase(stmt->var);
  }
  return changed ? copy : stmt;
}

}  // namespace

Program FoldGuards(Program program) {
  for (Kernel& kernel : program.kernels) {
    LoopExtents loops;
    kernel.body = FoldIn(kernel.body, {}, loops);
  }
  return program;
}

}  // namespace regatta::loop
