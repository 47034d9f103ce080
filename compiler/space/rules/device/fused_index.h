// Several indices counted as one number, and the number taken apart again where
// a stage wants its indices: the rows of a convolution's product are its
// images, lines and columns.
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_FUSED_INDEX_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_FUSED_INDEX_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/lower/loop_builder.h"
#include "compiler/lower/loop_ir.h"

namespace regatta {

// `body` with a variable that is `form` / `divisor` % `extent`; with a constant
// where that is one.
loop::StmtPtr WithPart(LoopBuilder& out, const Affine& form, int64_t divisor,
                       int64_t extent,
                       const std::function<loop::StmtPtr(const Affine&)>& body);

class FusedIndex {
 public:
  // The last of `indices` counts fastest. REQUIRES: there is one.
  FusedIndex(const Workload& workload, std::vector<int> indices);

  const std::vector<int>& indices() const { return indices_; }
  int last() const { return indices_.back(); }
  int64_t extent() const { return extent_; }

  // `body` with every index in `bound` at its part of number `place` * `step`.
  // Parts of several indices stay inside their extents even where `place` is
  // beyond the end. REQUIRES: `step` divides the extent of the last index.
  loop::StmtPtr Bind(LoopBuilder& out, const Affine& place, int64_t step,
                     std::map<int, Affine>& bound,
                     const std::function<loop::StmtPtr()>& body) const;
  // Where `place` * `step` is not beyond the end.
  loop::Guard Inside(const Affine& place, int64_t step) const {
    return {place, extent_ / step};
  }

 private:
  loop::StmtPtr BindFrom(size_t at, LoopBuilder& out, const Affine& place,
                         int64_t step, std::map<int, Affine>& bound,
                         const std::function<loop::StmtPtr()>& body) const;

  std::vector<int> indices_;
  std::vector<int64_t> extents_;
  int64_t extent_ = 1;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_FUSED_INDEX_H_
