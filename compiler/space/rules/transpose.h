// The rule for element-wise stages that read a tensor across its rows: square
// tiles are loaded along the tensor's rows, turned in registers, and stored
// along the result's.
#ifndef REGATTA_COMPILER_SPACE_RULES_TRANSPOSE_H_
#define REGATTA_COMPILER_SPACE_RULES_TRANSPOSE_H_

#include "compiler/space/rule.h"

namespace regatta {

const SpaceRule& TransposeRule();

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_TRANSPOSE_H_
