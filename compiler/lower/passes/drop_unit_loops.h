// Replaces every loop of one iteration by its body, the loop id by 0, so that
// code generators see no degenerate loops. Group and thread loops stay: they
// say where a kernel runs.
#ifndef REGATTA_COMPILER_LOWER_PASSES_DROP_UNIT_LOOPS_H_
#define REGATTA_COMPILER_LOWER_PASSES_DROP_UNIT_LOOPS_H_

#include "compiler/lower/loop_ir.h"

namespace regatta::loop {

Program DropUnitLoops(Program program);

}  // namespace regatta::loop

#endif  // REGATTA_COMPILER_LOWER_PASSES_DROP_UNIT_LOOPS_H_
