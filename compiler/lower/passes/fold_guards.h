// Drops the guards that always hold, also because of the guards around them; a
// load whose guards never hold together becomes its constant, and a statement
// whose guards never do goes.
#ifndef REGATTA_COMPILER_LOWER_PASSES_FOLD_GUARDS_H_
#define REGATTA_COMPILER_LOWER_PASSES_FOLD_GUARDS_H_

#include "compiler/lower/loop_ir.h"

namespace regatta::loop {

Program FoldGuards(Program program);

}  // namespace regatta::loop

#endif  // REGATTA_COMPILER_LOWER_PASSES_FOLD_GUARDS_H_
