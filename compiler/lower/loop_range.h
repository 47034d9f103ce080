// What values an affine form of loop variables can take.
#ifndef REGATTA_COMPILER_LOWER_LOOP_RANGE_H_
#define REGATTA_COMPILER_LOWER_LOOP_RANGE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/expr/affine.h"
#include "compiler/lower/loop_ir.h"

namespace regatta::loop {

// Inclusive.
struct Range {
  int64_t min = 0;
  int64_t max = 0;
};

// Bounds of `form` over all values of the loop variables that satisfy every
// guard: never too narrow, exact when the guards' forms add up to the guarded
// parts of `form` (as subscripts do to an offset). Absent when no values
// satisfy the guards.
std::optional<Range> GuardedRange(const Affine& form,
                                  const std::vector<Guard>& guards,
                                  const std::function<int64_t(int)>& extent);

}  // namespace regatta::loop

#endif  // REGATTA_COMPILER_LOWER_LOOP_RANGE_H_
