// Drops the guards that always hold; a load whose guards never hold together
// becomes its constant.
#ifndef REGATTA_COMPILER_LOWER_PASSES_FOLD_GUARDS_H_
#define REGATTA_COMPILER_LOWER_PASSES_FOLD_GUARDS_H_

#include "compiler/lower/loop_ir.h"

namespace regatta::loop {

Program FoldGuards(Program program);

}  // namespace regatta::loop

#endif  // REGATTA_COMPILER_LOWER_PASSES_FOLD_GUARDS_H_
