// Writes the text of a tensor expression.
#ifndef REGATTA_COMPILER_EXPR_PRINTER_H_
#define REGATTA_COMPILER_EXPR_PRINTER_H_

#include <string>

#include "compiler/expr/expr.h"

namespace regatta {

// Text that ParseExpression turns back into an equal workload: bindings for
// every index and tensor are spelled out.
std::string PrintExpression(const Workload& workload);
// The same with names by order of appearance (i0, i1, ..., t0, t1, ...).
std::string CanonicalExpression(const Workload& workload);

}  // namespace regatta

#endif  // REGATTA_COMPILER_EXPR_PRINTER_H_
