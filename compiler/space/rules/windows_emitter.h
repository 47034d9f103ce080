// Writes the loops of a stage over sliding windows: blocks of the output in
// registers, the window's taps spelled out, so that what neighbouring windows
// share is loaded once. Edges, where padding is read, have loops of their own;
// those of the interior have no guards.
#ifndef REGATTA_COMPILER_SPACE_RULES_WINDOWS_EMITTER_H_
#define REGATTA_COMPILER_SPACE_RULES_WINDOWS_EMITTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "compiler/lower/loop_builder.h"
#include "compiler/space/rules/fused_stages.h"
#include "compiler/space/rules/loop_nest.h"
#include "compiler/space/rules/windows_shape.h"

namespace regatta {

struct WindowsTiling {
  int64_t lanes = 1, vectors = 1;
  int64_t inner = 1, outer = 1;  // windows of a block along `inner`, `outer`
  // Where the loop over vectors stands: innermost, around the loop along
  // `inner`, or around both.
  enum class Vectors { kInside, kMiddle, kOutside } place = Vectors::kInside;
  bool all_taps = true;    // else only the innermost index of the window
  bool streaming = false;  // see streaming.h
  bool parallel = false;
};

class WindowsEmitter {
 public:
  // Stages [shape.stage, shape.stage + stage_count). REQUIRES: everything
  // outlives the emitter; stage_count <= 1 + shape.fusable_stages.
  WindowsEmitter(const WindowsShape& shape, const WindowsTiling& tiling,
                 int stage_count, LoopBuilder& out)
      : shape_(shape),
        tiling_(tiling),
        out_(out),
        fused_(out, shape.stage, stage_count, tiling.streaming) {}

  // Appends the kernel.
  void Emit();

 private:
  using Bind = std::function<Affine(int)>;
  // One loop of the nest, over tiles of `tile` values.
  struct Level {
    int index;
    int64_t tile;
    bool parallel = false;
  };

  const Stage& stage() const { return out_.workload().stages[shape_.stage]; }
  int64_t Extent(int index) const {
    return index < 0 ? 1 : out_.workload().indices[index].extent;
  }
  std::vector<Level> Levels() const;
  loop::StmtPtr Nest(size_t level);
  loop::StmtPtr Block();
  loop::StmtPtr Taps(size_t depth, const std::function<loop::StmtPtr()>& body);
  // `body` for every window of the block; its row counts `inner` fastest.
  loop::StmtPtr ForWindows(
      const std::function<loop::StmtPtr(const Affine& row)>& body);
  Bind BindAt(const Affine& position) const;

  const WindowsShape& shape_;
  const WindowsTiling& tiling_;
  LoopBuilder& out_;
  const FusedStages fused_;
  std::vector<Level> levels_;
  // State of the walk: what indices are bound to, the current block's extents.
  std::map<int, Affine> bound_;
  std::map<int, int64_t> extents_;
  Affine inner_, outer_;  // the window of the block at hand
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_WINDOWS_EMITTER_H_
