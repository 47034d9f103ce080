// Which stages reduce over small sliding windows.
#ifndef REGATTA_COMPILER_SPACE_RULES_WINDOWS_SHAPE_H_
#define REGATTA_COMPILER_SPACE_RULES_WINDOWS_SHAPE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/expr/expr.h"

namespace regatta {

// Most elements of a window whose steps are spelled out.
inline constexpr int64_t kMaxTaps = 128;

// out[...] = reduction over the window's taps of an expression in which some
// subscript is the sum of an output index and a tap.
struct WindowsShape {
  int stage = -1;
  int vector = -1;  // the contiguous index of the output
  // Output indices that windows slide along, the innermost in `inner`; -1: none
  // besides `vector`.
  int inner = -1, outer = -1;
  std::vector<int> others;  // the other output indices, outermost first
  int64_t taps = 1;
  int fusable_stages = 0;  // see fused_stages.h
};

// Absent when the stage has no windows, too large ones, or is a contraction
// that shares loads between rows.
std::optional<WindowsShape> MatchWindows(const Workload& workload, int stage);

// Consecutive values of an index.
struct Segment {
  int64_t start = 0, extent = 0;
};

// The extent of output index `index` in up to three parts: in the middle one no
// padded access of the stage leaves its tensor because of this index. One part
// when there is no such middle.
std::vector<Segment> InteriorAndEdges(const Workload& workload,
                                      const Stage& stage, int index);

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_WINDOWS_SHAPE_H_
