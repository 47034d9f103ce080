// The knobs of a contraction.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/contraction_part.h"

namespace regatta {
namespace {

// Most summed indices whose orders are all offered.
constexpr size_t kMaxPermutedIndices = 3;

std::string OrderName(const std::vector<int>& places) {
  std::string name;
  for (int place : places) absl::StrAppend(&name, place);
  return name;
}

}  // namespace

void ContractionPart::AddKernelKnobs() {
  const int64_t lanes = target_lanes_;
  Add(NumberKnob("vec", "lanes of one vector",
                 {std::max<int64_t>(1, lanes / 2), lanes}),
      [](ContractionChoices& c, int64_t x) { c.tiling.lanes = x; });
  std::vector<int64_t> rows;
  int64_t longest = 1;
  for (int index : row_indices_) longest = std::max(longest, Extent(index));
  for (int64_t r : {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                    12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28}) {
    if (r <= longest) rows.push_back(r);
  }
  Add(NumberKnob("mr", "rows of the register block", std::move(rows)),
      [](ContractionChoices& c, int64_t x) { c.tiling.rows = x; });
  std::vector<int64_t> vectors = {1};
  for (int64_t v : {2, 3, 4, 5, 6, 8}) {
    if ((v - 1) * std::max<int64_t>(1, lanes / 2) < Extent(shape_.vector)) {
      vectors.push_back(v);
    }
  }
  Add(NumberKnob("nv", "vectors of the register block", std::move(vectors)),
      [](ContractionChoices& c, int64_t x) { c.tiling.vectors = x; });
  if (row_indices_.size() > 1) {
    Add(WordKnob("rows_over", "output dimension of the register block's rows",
                 DimensionLabels(context_.workload.stages[shape_.stage],
                                 row_indices_)),
        [this](ContractionChoices& c, int64_t x) {
          c.tiling.row_index = row_indices_[x];
        });
  }
  if (!forms_.empty()) {
    std::vector<int64_t> depths = {1};
    for (const ProductForm& form : forms_) depths.push_back(form.depth);
    Add(NumberKnob("dot", "products that one instruction sums",
                   std::move(depths)),
        [this](ContractionChoices& c, int64_t x) {
          c.tiling.products = ProductForm();
          c.tiling.group = x > 1 ? shape_.group : -1;
          for (const ProductForm& form : forms_) {
            if (form.depth == x) c.tiling.products = form;
          }
        });
  }
  if (lanes_of_a_) {
    Add(WordKnob("load_a",
                 "how the operand that is shared by vectors is loaded",
                 {"element", "vector"}),
        [](ContractionChoices& c, int64_t x) {
          c.tiling.a_lanes = x == 1 ? 2 : 1;  // Decode knows how many
        });
  }
  Add(NumberKnob("unroll", "copies of the innermost summing step",
                 {1, 2, 4, 8}),
      [](ContractionChoices& c, int64_t x) { c.tiling.unroll = x; });
}

void ContractionPart::AddBlockKnobs() {
  int64_t longest = 1;
  for (int index : row_indices_) longest = std::max(longest, Extent(index));
  const int64_t k = Extent(split_k_);
  std::vector<int64_t> k_blocks = {64,   128,           256,
                                   512,  1024,          CeilDiv(k, 2),
                                   2048, CeilDiv(k, 3), CeilDiv(k, 4)};
  // Few rows have nothing to keep in the cache but the streamed operand.
  if (shape_.Rows(context_.workload) <= 16) {
    k_blocks.insert(k_blocks.end(), {4, 8, 16, 32});
  }
  Add(SizeKnob("kc", "summed elements per block", k, std::move(k_blocks)),
      [](ContractionChoices& c, int64_t x) { c.kc = x; });
  Add(SizeKnob("mc", "rows per block", longest, {28, 56, 112, 224, 448, 896}),
      [](ContractionChoices& c, int64_t x) { c.mc = x; });
  Add(SizeKnob("nc", "vectorised elements per block", Extent(shape_.vector),
               {64, 128, 256, 512, 1024, 2048}),
      [](ContractionChoices& c, int64_t x) { c.nc = x; });
  const bool padded = CanLeave(context_.workload, *shape_.a);
  Add(WordKnob("pack_a", "copy of the operand that is shared by vectors",
               {padded ? "whole" : "none", "block"}),
      [](ContractionChoices& c, int64_t x) { c.tiling.pack_a = x == 1; });
  Add(WordKnob(
          "pack_b", "copy of the operand that is loaded in vectors",
          {CanLeave(context_.workload, *shape_.b) ? "whole" : "none", "panel"}),
      [](ContractionChoices& c, int64_t x) { c.tiling.pack_b = x == 1; });
}

void ContractionPart::AddOrderKnobs() {
  constexpr LoopGroup kM = LoopGroup::kM, kN = LoopGroup::kN,
                      kK = LoopGroup::kK;
  static constexpr std::array<std::array<LoopGroup, 3>, 6> kOrders = {
      {{kN, kK, kM},
       {kN, kM, kK},
       {kM, kN, kK},
       {kM, kK, kN},
       {kK, kN, kM},
       {kK, kM, kN}}};
  Add(WordKnob("order", "order of the loops over blocks",
               {"nkm", "nmk", "mnk", "mkn", "knm", "kmn"}),
      [](ContractionChoices& c, int64_t x) { c.tiling.order = kOrders[x]; });
  Add(WordKnob("inner", "order of the loops over tiles in a block",
               {"nm", "mn"}),
      [](ContractionChoices& c, int64_t x) { c.tiling.rows_inside = x == 0; });
  if (shape_.k.size() > 1) {
    std::vector<int> places(shape_.k.size());
    std::iota(places.begin(), places.end(), 0);
    std::vector<std::string> labels;
    for (bool more = true; more;) {
      std::vector<int> order;
      for (int place : places) order.push_back(shape_.k[place]);
      k_orders_.push_back(std::move(order));
      labels.push_back(OrderName(places));
      if (places.size() <= kMaxPermutedIndices) {
        more = std::next_permutation(places.begin(), places.end());
      } else {
        std::rotate(places.begin(), places.begin() + 1, places.end());
        more = labels.size() < places.size();
      }
    }
    Add(WordKnob("korder", "order of the summed loops, outermost first",
                 std::move(labels)),
        [this](ContractionChoices& c, int64_t x) {
          c.tiling.k_order = k_orders_[x];
        });
  }
  if (context_.threads > 1) {
    using Parallel = ContractionTiling::Parallel;
    std::vector<std::string> labels = {"none", "n"};
    std::vector<Parallel> groups = {Parallel::kNone, Parallel::kN};
    if (!row_indices_.empty()) {
      labels.push_back("m");
      groups.push_back(Parallel::kM);
    }
    if (!shape_.batch.empty()) {
      labels.push_back("batch");
      groups.push_back(Parallel::kBatch);
    }
    Add(WordKnob("par", "which group's longest loop runs in parallel",
                 std::move(labels)),
        [groups](ContractionChoices& c, int64_t x) {
          c.tiling.parallel = groups[x];
        });
  }
}

}  // namespace regatta
