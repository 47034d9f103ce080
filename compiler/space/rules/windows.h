// The rule for reductions over small windows that slide over their input:
// depthwise convolutions, pooling, stencils.
#ifndef REGATTA_COMPILER_SPACE_RULES_WINDOWS_H_
#define REGATTA_COMPILER_SPACE_RULES_WINDOWS_H_

#include "compiler/space/rule.h"

namespace regatta {

const SpaceRule& WindowsRule();

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_WINDOWS_H_
