// What normalisations of rows share.
#ifndef REGATTA_COMPILER_OPS_NORMS_H_
#define REGATTA_COMPILER_OPS_NORMS_H_

#include "compiler/ops/op.h"

namespace regatta {

// The parameter `eps`, added to a variance before its square root is taken.
OpParameter EpsParameter();

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_NORMS_H_
