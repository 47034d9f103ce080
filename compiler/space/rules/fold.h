// The rule for reductions over an outer dimension of their input: the input is
// read from front to back and folded into a result that stays in the cache.
#ifndef REGATTA_COMPILER_SPACE_RULES_FOLD_H_
#define REGATTA_COMPILER_SPACE_RULES_FOLD_H_

#include "compiler/space/rule.h"

namespace regatta {

const SpaceRule& FoldRule();

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_FOLD_H_
