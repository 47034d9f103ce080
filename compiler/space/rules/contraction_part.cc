#include "compiler/space/rules/contraction_part.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/contraction_emitter.h"

namespace regatta {

ContractionPart::ContractionPart(const SpaceContext& context,
                                 ContractionShape shape, int stage_count)
    : context_(context), shape_(std::move(shape)), stage_count_(stage_count) {
  // Sums are accumulated in types of four bytes. A short output needs no more
  // lanes than it has elements.
  target_lanes_ = context.target.Lanes(4);
  while (target_lanes_ > 1 && target_lanes_ / 2 >= Extent(shape_.vector)) {
    target_lanes_ /= 2;
  }
  row_indices_.assign(shape_.m.rbegin(), shape_.m.rend());
  for (int index : shape_.k) {
    if (split_k_ < 0 || Extent(index) > Extent(split_k_)) split_k_ = index;
  }
  FindForms();
  lanes_of_a_ = MultipliesByLane(context.target) && !shape_.vector_in_a &&
                std::any_of(shape_.k.begin(), shape_.k.end(),
                            [&](int index) { return ContiguousInA(index); });
  AddKernelKnobs();
  AddBlockKnobs();
  AddOrderKnobs();
  AddConstraints();
  SetDefaults();
}

void ContractionPart::FindForms() {
  constexpr int64_t kLeastLanes = 4;  // of what sums lane by lane
  if (shape_.group < 0 || target_lanes_ < kLeastLanes) return;
  const Workload& w = context_.workload;
  const DType type = w.tensors[shape_.a->tensor].dtype;
  for (const std::string& text : context_.target.products) {
    const std::optional<ProductForm> form = ParseProductForm(text);
    if (!form || form->type != type) continue;
    const bool block = form->rows > 1;
    // Blocks need several rows, and rows of A that are packed together.
    if (block && (row_indices_.empty() || shape_.vector_in_a ||
                  form->rows * form->cols != target_lanes_)) {
      continue;
    }
    if (shape_.vector_in_a) continue;
    forms_.push_back(*form);
  }
  std::sort(forms_.begin(), forms_.end(),
            [](const ProductForm& a, const ProductForm& b) {
              return a.depth < b.depth;
            });
}

bool ContractionPart::ContiguousInA(int index) const {
  return FlatForm(context_.workload, *shape_.a).Coeff(index) == 1;
}

int64_t ContractionPart::LanesOfA(const ProductForm& products) const {
  constexpr int64_t kBytes = 16;
  const DType type = context_.workload.tensors[shape_.a->tensor].dtype;
  // Floats are computed with in f32; bytes by themselves in 16 bits.
  const int64_t bytes = IsFloat(type)        ? 4
                        : products.depth > 1 ? DTypeBytes(type)
                        : type == DType::kI8 ? 2
                                             : DTypeBytes(type);
  return kBytes / bytes;
}

ContractionTiling ContractionPart::Decode(const KnobValues& values) const {
  ContractionChoices c;
  c.tiling.row_index = row_indices_.empty() ? -1 : row_indices_[0];
  c.tiling.split_k = split_k_;
  c.tiling.k_order = shape_.k;
  c = KnobbedPart::Decode(values, std::move(c));
  ContractionTiling& t = c.tiling;
  if (t.a_lanes > 1) t.a_lanes = LanesOfA(t.products);
  // Groups of neighbouring columns are neighbours only in panels then.
  if (t.Grouped() && !shape_.b_contiguous) t.pack_b = true;
  // Blocks are whole tiles, or everything.
  const auto block = [](int64_t size, int64_t tile, int64_t extent) {
    const int64_t whole = std::max(tile, size / tile * tile);
    return size == 0 || whole >= extent ? extent : whole;
  };
  t.row_block = block(c.mc, t.rows, RowExtent(t));
  t.vector_block = block(c.nc, t.TileWidth(), Extent(shape_.vector));
  t.k_block =
      block(c.kc, split_k_ == t.group ? t.products.depth : 1, Extent(split_k_));
  return t;
}

void ContractionPart::Emit(const KnobValues& values, LoopBuilder& out) const {
  const ContractionTiling tiling = Decode(values);
  ContractionEmitter(shape_, tiling, stage_count_, out).Emit();
}

// Blocks that round to the same size take the largest number that does, and
// orders of loops that do not run become the first of those that agree on the
// loops that do.
void ContractionPart::Normalise(KnobValues& values) const {
  const ContractionTiling before = Decode(values);
  const auto same_blocks = [&](const ContractionTiling& other) {
    return other.row_block == before.row_block &&
           other.vector_block == before.vector_block &&
           other.k_block == before.k_block;
  };
  for (const char* name : {"mc", "nc", "kc"}) {
    const size_t at = Place(name);
    if (at == knobs_.size()) continue;
    const std::vector<int64_t>& choices = knobs_[at].choices;
    for (auto choice = choices.rbegin(); choice != choices.rend(); ++choice) {
      values[at] = *choice;
      if (same_blocks(Decode(values))) break;
    }
  }
  const TilingFacts facts(context_.workload, shape_, before);
  const auto active_order = [&](const ContractionTiling& tiling) {
    std::vector<LoopGroup> order;
    for (LoopGroup group : tiling.order) {
      if (facts.Active(group)) order.push_back(group);
    }
    return order;
  };
  const size_t order = Place("order");
  if (order != knobs_.size()) {
    for (int64_t choice : knobs_[order].choices) {
      values[order] = choice;
      if (active_order(Decode(values)) == active_order(before)) break;
    }
  }
  if (before.pack_b) values[Place("pack_b")] = 1;
  // Rows of blocks are always packed, and so loaded in vectors.
  if (before.products.rows > 1) {
    values[Place("pack_a")] = 0;
    if (const size_t at = Place("load_a"); at != knobs_.size()) values[at] = 0;
  }
  const size_t inner = Place("inner");
  if (inner != knobs_.size() && (before.row_block <= before.rows ||
                                 before.vector_block <= before.TileWidth())) {
    values[inner] = knobs_[inner].choices[0];
  }
}

}  // namespace regatta
