// Contractions on devices: groups compute tiles of the output, threads register
// tiles in it, from operands that the group may keep in local memory.
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_TILES_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_TILES_H_

#include "compiler/space/rule.h"

namespace regatta {

const SpaceRule& TilesRule();

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_TILES_H_
