// The rule for sums of products: matrix products, convolutions and any other
// contraction, with packing and a register-blocked micro-kernel.
#ifndef REGATTA_COMPILER_SPACE_RULES_CONTRACTION_H_
#define REGATTA_COMPILER_SPACE_RULES_CONTRACTION_H_

#include "compiler/space/rule.h"

namespace regatta {

const SpaceRule& ContractionRule();

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_CONTRACTION_H_
