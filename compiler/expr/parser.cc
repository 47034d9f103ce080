#include "compiler/expr/parser.h"

#include "base/digest.h"
#include "base/status_macros.h"
#include "compiler/expr/printer.h"
#include "compiler/expr/syntax.h"
#include "compiler/expr/syntax_parser.h"
#include "compiler/expr/verifier.h"

namespace regatta {
namespace {

bool IsAccess(const Expr& expr) {
  if (expr.kind == Expr::Kind::kCast) return IsAccess(*expr.operands[0]);
  return expr.kind == Expr::Kind::kAccess;
}

// The structural rule that describes the last reduction.
std::string Family(const Workload& workload) {
  for (size_t i = workload.stages.size(); i-- > 0;) {
    const Stage& stage = workload.stages[i];
    if (stage.reduction == Reduction::kNone) continue;
    const Expr& value = *stage.value;
    const bool product_of_accesses =
        stage.reduction == Reduction::kSum &&
        value.kind == Expr::Kind::kBinary && value.binary == BinaryOp::kMul &&
        IsAccess(*value.operands[0]) && IsAccess(*value.operands[1]);
    return product_of_accesses ? "contraction" : "reduction";
  }
  return "elementwise";
}

}  // namespace

absl::StatusOr<Workload> ParseExpression(std::string_view text) {
  ASSIGN_OR_RETURN(Workload workload, ParseUnnamedExpression(text));
  workload.family = Family(workload);
  workload.text = PrintExpression(workload);
  return workload;
}

absl::StatusOr<Workload> ParseUnnamedExpression(std::string_view text) {
  ASSIGN_OR_RETURN(const WorkloadSyntax syntax, ParseSyntax(text));
  ASSIGN_OR_RETURN(Workload workload, Elaborate(syntax));
  RETURN_IF_ERROR(VerifyWorkload(workload));
  workload.canonical = CanonicalExpression(workload);
  workload.key = Sha256Hex(workload.canonical).substr(0, 32);
  return workload;
}

}  // namespace regatta
