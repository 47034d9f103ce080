// Calls of every operator that are of the class of a product of 64 x 64 x 64:
// small enough for simulated devices, large enough for several groups with
// several tiles each, and with tails of all kinds.
#ifndef REGATTA_TESTS_COMPILER_OPERATOR_SHAPES_H_
#define REGATTA_TESTS_COMPILER_OPERATOR_SHAPES_H_

#include <string>
#include <vector>

#include "compiler/ops/op.h"

namespace regatta {

// Every type that the operator has is among them. An operator that has no line
// in the list gives its samples.
std::vector<std::string> ShapesOf(const Op& op);

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_OPERATOR_SHAPES_H_
