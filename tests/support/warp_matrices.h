// What matrix units do with the fragments of a warp, for the loop interpreter.
// The places of elements are worked out from lane and number alone, apart from
// the PTX simulator.
#ifndef REGATTA_TESTS_SUPPORT_WARP_MATRICES_H_
#define REGATTA_TESTS_SUPPORT_WARP_MATRICES_H_

#include <cstdint>
#include <functional>

#include "compiler/target/target.h"

namespace regatta {

// Element `element` of what lane `lane` has of an operand.
using LaneElement = std::function<double&(int lane, int64_t element)>;

// load_matrix: `row` gives element `column` of the row whose address lane
// `lane` has. `per_word`: elements in 32 bits.
void LoadMatrices(int matrices, bool turned, int per_word,
                  const std::function<double(int lane, int64_t column)>& row,
                  const LaneElement& to);

// mma: c += a * b. What is added to or multiplied by a NaN becomes one, in
// integers too.
void MultiplyFragments(const ProductForm& form, const LaneElement& c,
                       const LaneElement& a, const LaneElement& b);

}  // namespace regatta

#endif  // REGATTA_TESTS_SUPPORT_WARP_MATRICES_H_
