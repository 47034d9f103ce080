// The plain lowering of a workload that schedules are checked against.
#ifndef REGATTA_COMPILER_REFERENCE_H_
#define REGATTA_COMPILER_REFERENCE_H_

#include "compiler/expr/expr.h"
#include "compiler/lower/loop_ir.h"
#include "compiler/target/target.h"

namespace regatta {

// `workload` with every float computed in f64 and internal tensors held in f64.
// Casts and outputs still round to their types.
Workload WidenWorkload(const Workload& workload);

// One loop nest per stage of a widened workload, on one thread. The last output
// index runs over a few vectors of `target` inside the reduction, which keeps a
// large product to a fraction of a second without changing the order in which
// any element is summed.
loop::Program EmitReference(const Workload& widened, const Target& target);

}  // namespace regatta

#endif  // REGATTA_COMPILER_REFERENCE_H_
