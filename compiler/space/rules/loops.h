// The rule that always applies: one stage as one loop nest.
#ifndef REGATTA_COMPILER_SPACE_RULES_LOOPS_H_
#define REGATTA_COMPILER_SPACE_RULES_LOOPS_H_

#include "compiler/space/rule.h"

namespace regatta {

const SpaceRule& LoopsRule();

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_LOOPS_H_
