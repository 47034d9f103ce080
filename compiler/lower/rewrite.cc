#include "compiler/lower/rewrite.h"

#include <memory>
#include <utility>
#include <vector>

namespace regatta::loop {
namespace {

using StoreChange =
    std::function<ValuePtr(const ValuePtr&, const LoopExtents&)>;

StmtPtr RewriteIn(const StmtPtr& stmt, LoopExtents& loops,
                  const StoreChange& change) {
  auto copy = std::make_shared<Stmt>(*stmt);
  bool changed = false;
  if (stmt->kind == Stmt::Kind::kStore) {
    copy->value = change(stmt->value, loops);
    changed = copy->value != stmt->value;
  }
  if (stmt->kind == Stmt::Kind::kFor) loops[stmt->var] = stmt->extent;
  for (StmtPtr& child : copy->body) {
    StmtPtr rewritten = RewriteIn(child, loops, change);
    changed = changed || rewritten != child;
    child = std::move(rewritten);
  }
  if (stmt->kind == Stmt::Kind::kFor) loops.erase(stmt->var);
  return changed ? copy : stmt;
}

}  // namespace

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

StmtPtr RewriteStores(const StmtPtr& stmt, const StoreChange& change) {
  LoopExtents loops;
  return RewriteIn(stmt, loops, change);
}

}  // namespace regatta::loop
