#include "compiler/lower/passes/drop_unit_loops.h"

#include <memory>
#include <set>
#include <utility>

#include "compiler/lower/rewrite.h"

namespace regatta::loop {
namespace {

// Without the variables in `zero`, all of which are 0.
Affine Drop(Affine form, const std::set<int>& zero) {
  const Affine original = form;
  for (const Affine::Term& term : original.terms()) {
    if (zero.count(term.var)) form = form.Substitute(term.var, Affine());
  }
  return form;
}

ValuePtr DropInNode(ValuePtr node, const std::set<int>& zero) {
  if (node->kind != Value::Kind::kLoad && node->kind != Value::Kind::kIndex) {
    return node;
  }
  auto copy = std::make_shared<Value>(*node);
  copy->offset = Drop(copy->offset, zero);
  for (Guard& guard : copy->guards) guard.form = Drop(guard.form, zero);
  return copy;
}

// `zero`: the unit loops around `stmt`. Sharing is given up: programs are small
// before they are expanded.
StmtPtr DropIn(const StmtPtr& stmt, std::set<int>& zero) {
  const bool unit = stmt->extent == 1 &&
                    (stmt->kind == Stmt::Kind::kLet ||
                     (stmt->kind == Stmt::Kind::kFor &&
                      stmt->loop != LoopKind::kGroup &&
                      stmt->loop != LoopKind::kThread));
  if (unit) {
    zero.insert(stmt->var);
    StmtPtr body = DropIn(stmt->body[0], zero);
    zero.erase(stmt->var);
    return body;
  }
  auto copy = std::make_shared<Stmt>(*stmt);
  if (stmt->kind == Stmt::Kind::kStore) {
    copy->offset = Drop(stmt->offset, zero);
    copy->value = RewriteValue(stmt->value, [&](ValuePtr node) {
      return DropInNode(std::move(node), zero);
    });
  }
  if (stmt->kind == Stmt::Kind::kLet) copy->offset = Drop(stmt->offset, zero);
  for (Guard& guard : copy->guards) guard.form = Drop(guard.form, zero);
  for (IntrinsicOperand& operand : copy->operands) {
    operand.offset = Drop(operand.offset, zero);
    for (Guard& guard : operand.guards) guard.form = Drop(guard.form, zero);
  }
  for (StmtPtr& child : copy->body) child = DropIn(child, zero);
  return copy;
}

}  // namespace

Program DropUnitLoops(Program program) {
  std::set<int> zero;
  for (Kernel& kernel : program.kernels) {
    kernel.body = DropIn(kernel.body, zero);
  }
  return program;
}

}  // namespace regatta::loop
