// The rule for devices that always applies: one stage, each thread some of its
// output's elements.
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_THREADS_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_THREADS_H_

#include "compiler/space/rule.h"

namespace regatta {

const SpaceRule& ThreadsRule();

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_THREADS_H_
