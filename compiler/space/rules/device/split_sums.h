// Sums that several groups share: each keeps its part in a workspace, and a
// kernel behind adds the parts up, always in the same order.
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_SPLIT_SUMS_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_SPLIT_SUMS_H_

#include <cstdint>

#include "compiler/lower/loop_builder.h"

namespace regatta {

// A workspace for `splits` parts of the sums of a stage: part p of element e of
// its tensor, in row-major order, is p * SplitElements + e.
int AddSplitSums(LoopBuilder& out, int stage, int64_t splits);
int64_t SplitElements(const LoopBuilder& out, int stage);

// The kernel that makes the results of stages [stage, stage + stage_count) from
// them, the later ones fused into the first.
void AddUpSplitSums(LoopBuilder& out, int stage, int stage_count,
                    int64_t splits, int workspace);

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_SPLIT_SUMS_H_
