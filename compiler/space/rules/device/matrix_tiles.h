// Contractions on matrix units: warps multiply blocks with one instruction,
// from slices of both operands in local memory.
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILES_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILES_H_

#include "compiler/space/rule.h"

namespace regatta {

const SpaceRule& MatrixTilesRule();

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_TILES_H_
