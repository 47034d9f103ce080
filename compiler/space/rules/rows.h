// The rule for stages that work row by row: softmax, normalisations, and any
// other chain whose stages share their leading output indices.
#ifndef REGATTA_COMPILER_SPACE_RULES_ROWS_H_
#define REGATTA_COMPILER_SPACE_RULES_ROWS_H_

#include "compiler/space/rule.h"

namespace regatta {

const SpaceRule& RowsRule();

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_ROWS_H_
