// Rebuilding immutable loops: what passes are written with.
#ifndef REGATTA_COMPILER_LOWER_REWRITE_H_
#define REGATTA_COMPILER_LOWER_REWRITE_H_

#include <functional>
#include <map>

#include "compiler/lower/loop_ir.h"

namespace regatta::loop {

// Extents of the loops around a statement, by loop id.
using LoopExtents = std::map<int, int64_t>;

// `value` with every node, operands first, replaced by what `change` returns
// for it. A node whose operands did not change and that `change` returns as it
// came is shared, not copied.
ValuePtr RewriteValue(const ValuePtr& value,
                      const std::function<ValuePtr(ValuePtr)>& change);

}  // namespace regatta::loop

#endif  // REGATTA_COMPILER_LOWER_REWRITE_H_
