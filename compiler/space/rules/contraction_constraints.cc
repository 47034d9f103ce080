// What a contraction's tiling must obey.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/contraction_part.h"

namespace regatta {
namespace {

// Vector operations that a candidate may spell out; building takes about a
// millisecond per twenty of them.
constexpr int64_t kMaxCodeSize = 768;
// Scratch that a packed copy may take.
constexpr int64_t kMaxPackedBytes = int64_t{1} << 30;

}  // namespace

// The smallest values of all knobs, without packing or blocks, satisfy every
// constraint.
void ContractionPart::AddConstraints() {
  AddKernelConstraints();
  AddExtentConstraints();
  AddLimitConstraints();
}

void ContractionPart::AddKernelConstraints() {
  const int64_t registers = std::max(4, context_.target.vector_registers);
  Require("register_budget",
          [registers](const ContractionTiling& t, const TilingFacts& facts) {
            const int64_t used = t.Registers();
            if (used <= registers) return Violation();
            return Violation(absl::StrCat(
                t.rows, "*", t.vectors, "+", used - t.rows * t.vectors - 1,
                "+1 = ", used, " of ", registers, " vector registers"));
          });
  if (!forms_.empty()) {
    Require("product_block", [this](const ContractionTiling& t,
                                    const TilingFacts& facts) {
      if (!t.Grouped() ||
          (t.lanes == (t.products.cols == 0 ? std::max<int64_t>(4, t.lanes)
                                            : target_lanes_) &&
           t.rows % t.products.rows == 0)) {
        return Violation();
      }
      return Violation(absl::StrCat("blocks of ", t.products.rows, "x",
                                    t.BlockCols(), " sums in ", t.rows,
                                    " rows of vectors of ", t.lanes));
    });
  }
  if (lanes_of_a_) {
    Require("lanes_of_a",
            [this](const ContractionTiling& t, const TilingFacts& facts) {
              if (t.a_lanes == 1) return Violation();
              const int inner = t.k_order.back();
              if (!ContiguousInA(inner) || (t.Grouped() && inner != t.group) ||
                  t.products.rows > 1) {
                return Violation("neighbours of the innermost step are apart");
              }
              if (facts.InnerTrips() >= facts.LaneSteps() && t.unroll == 1) {
                return Violation();
              }
              return Violation(
                  absl::StrCat(facts.LaneSteps(), " steps at a time of ",
                               facts.InnerTrips(), ", ", t.unroll, " copies"));
            });
  }
}

void ContractionPart::AddExtentConstraints() {
  Require("rows_fit", [](const ContractionTiling& t, const TilingFacts& facts) {
    if (t.rows <= facts.RowExtent()) return Violation();
    return Violation(absl::StrCat(t.rows, " rows of ", facts.RowExtent()));
  });
  Require("vectors_fit",
          [](const ContractionTiling& t, const TilingFacts& facts) {
            if ((t.vectors - 1) * t.lanes < facts.VectorExtent())
              return Violation();
            return Violation(absl::StrCat(t.vectors, " vectors of ", t.lanes,
                                          " lanes for ", facts.VectorExtent(),
                                          " elements"));
          });
  Require("unroll_fits",
          [](const ContractionTiling& t, const TilingFacts& facts) {
            if (t.unroll <= facts.InnerTrips()) return Violation();
            return Violation(absl::StrCat(t.unroll, " copies of a loop of ",
                                          facts.InnerTrips(), " steps"));
          });
}

void ContractionPart::AddLimitConstraints() {
  Require(
      "code_size", [](const ContractionTiling& t, const TilingFacts& facts) {
        const int64_t size = facts.CodeSize();
        if (size <= kMaxCodeSize) return Violation();
        return Violation(
            absl::StrCat(size, " vector operations of at most ", kMaxCodeSize));
      });
  Require("packed_size", [this](const ContractionTiling& t,
                                const TilingFacts& facts) {
    int64_t bytes = 0;
    if (t.pack_b) {
      bytes = DTypeBytes(context_.workload.tensors[shape_.b->tensor].dtype);
      bytes *= RoundUp(facts.VectorExtent(), t.TileWidth()) * facts.KExtent();
      for (int index : shape_.n) bytes *= Extent(index);
      for (int index : shape_.batch) bytes *= Extent(index);
    }
    if (bytes <= kMaxPackedBytes) return Violation();
    return Violation(absl::StrCat("a packed copy of ", bytes,
                                  " bytes; at most ", kMaxPackedBytes));
  });
  if (context_.threads > 1) {
    Require("parallel_loop",
            [](const ContractionTiling& t, const TilingFacts& facts) {
              if (facts.ParallelTrips() >= 2 ||
                  t.parallel == ContractionTiling::Parallel::kNone) {
                return Violation();
              }
              return Violation("the parallel loop has one iteration");
            });
  }
}

}  // namespace regatta
