// One contraction and the stages fused into it, with its knobs.
#ifndef REGATTA_COMPILER_SPACE_RULES_CONTRACTION_PART_H_
#define REGATTA_COMPILER_SPACE_RULES_CONTRACTION_PART_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/space/rules/contraction_shape.h"
#include "compiler/space/rules/contraction_tiling.h"
#include "compiler/space/rules/knobbed_part.h"

namespace regatta {

// What the knobs say, before blocks are rounded to tiles.
struct ContractionChoices {
  ContractionTiling tiling;
  int64_t kc = 0, mc = 0, nc = 0;  // 0: all
};

class ContractionPart : public KnobbedPart<ContractionChoices> {
 public:
  ContractionPart(const SpaceContext& context, ContractionShape shape,
                  int stage_count);

  std::vector<KnobValues> Seeds() const override;
  void Normalise(KnobValues& values) const override;
  void Emit(const KnobValues& values, LoopBuilder& out) const override;

 private:
  int64_t Extent(int index) const {
    return index < 0 ? 1 : context_.workload.indices[index].extent;
  }
  int64_t RowExtent(const ContractionTiling& tiling) const {
    return Extent(tiling.row_index);
  }
  ContractionTiling Decode(const KnobValues& values) const;

  void FindForms();
  // Elements of A in one vector load that multiplications take lanes of.
  int64_t LanesOfA(const ProductForm& products) const;
  bool ContiguousInA(int index) const;

  // contraction_knobs.cc
  void AddKernelKnobs();
  void AddBlockKnobs();
  void AddOrderKnobs();
  // contraction_constraints.cc
  void AddConstraints();
  void AddKernelConstraints();
  void AddExtentConstraints();
  void AddLimitConstraints();
  using Violation = std::optional<std::string>;
  // `check`: of a tiling and what it comes to; what it breaks, in words.
  template <typename Check>
  void Require(std::string name, Check check) {
    constraints_.push_back(
        {std::move(name), [this, check](const KnobValues& values) {
           const ContractionTiling tiling = Decode(values);
           return Violation(
               check(tiling, TilingFacts(context_.workload, shape_, tiling)));
         }});
  }
  // contraction_defaults.cc
  void SetDefaults();
  bool LoadsVectorsOfA(const ProductForm& products) const;
  // Null: plain multiply-adds.
  const ProductForm* DefaultForm() const;
  // Legal micro-kernels (their lanes, vectors, rows and row index), the
  // quickest by the model first, until `visit` returns true.
  void VisitRankedKernels(
      absl::FunctionRef<bool(const ContractionTiling&)> visit) const;
  // Values around the first `count` of them that have any.
  std::vector<KnobValues> BestKernels(size_t count) const;
  // Heuristic values of all knobs around a micro-kernel; absent when they break
  // a constraint.
  std::optional<KnobValues> Around(const ContractionTiling& kernel) const;
  void WishBlocks(const ContractionTiling& kernel, KnobValues& values) const;
  void WishParallel(KnobValues& values) const;
  // `values` with the largest choice of `knob` that is at most `size`, the
  // smallest when there is none, "all" when `size` reaches the extent.
  void SetSize(std::string_view knob, int64_t size, int64_t extent,
               KnobValues& values) const;
  void SetWord(std::string_view knob, std::string_view label,
               KnobValues& values) const;

  const SpaceContext& context_;
  const ContractionShape shape_;
  const int stage_count_;
  int64_t target_lanes_ = 1;
  // What one instruction can sum for these types; without the plain
  // multiply-add, which is always there. By depth.
  std::vector<ProductForm> forms_;
  // Whether A can be loaded in vectors along a summed index.
  bool lanes_of_a_ = false;
  std::vector<int> row_indices_;  // candidates, innermost first
  int split_k_ = -1;              // the largest summed index
  std::vector<std::vector<int>> k_orders_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_CONTRACTION_PART_H_
