// Reductions that the threads of a group share: each takes every T-th element,
// and the group adds up what they found in local memory.
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_GROUP_REDUCE_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_GROUP_REDUCE_H_

#include "compiler/space/rule.h"

namespace regatta {

const SpaceRule& GroupReduceRule();

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_GROUP_REDUCE_H_
