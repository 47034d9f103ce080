// The rules that every workload in hand obeys.
#ifndef REGATTA_COMPILER_EXPR_VERIFIER_H_
#define REGATTA_COMPILER_EXPR_VERIFIER_H_

#include "absl/status/status.h"
#include "compiler/expr/expr.h"

namespace regatta {

// Largest number of elements of one tensor, and of iterations of one stage.
// Beyond them nothing could be allocated or timed; below them all index
// arithmetic fits int64.
inline constexpr int64_t kMaxTensorElements = int64_t{1} << 32;
inline constexpr double kMaxStageIterations = 1e15;

// OK, or InvalidArgument that names the stage, tensor or index: extents
// positive, indices bound, each tensor assigned once and before it is read, no
// access out of bounds unless padded, subscripts as many as dimensions, types
// known, sizes within the limits above.
absl::Status VerifyWorkload(const Workload& workload);

}  // namespace regatta

#endif  // REGATTA_COMPILER_EXPR_VERIFIER_H_
