// Default and seeds of a contraction: micro-kernels ranked by a small model of
// the core, blocks by the sizes of the caches.
#include <algorithm>
#include <tuple>
#include <utility>

#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/contraction_part.h"

namespace regatta {
namespace {

// Micro-kernels that become seeds.
constexpr size_t kSeedKernels = 8;
constexpr size_t kMaxSeeds = 20;
// Below this many rows a packed copy of B is not read often enough to pay.
constexpr int64_t kRowsWorthPacking = 512;
// Up to this many rows a contraction is bound by streaming B.
constexpr int64_t kStreamingRows = 4;
constexpr int64_t kStreamingDepth = 16;  // summed elements per pass over B
constexpr int64_t kPageBytes = 4096;
// Rows of A in vectors: lanes of 16 bits can be taken of the first 16 registers
// only, which hold more than these.
constexpr int64_t kRowsInVectors = 8;

}  // namespace

void ContractionPart::SetSize(std::string_view knob, int64_t size,
                              int64_t extent, KnobValues& values) const {
  const size_t at = Place(knob);
  if (at == knobs_.size()) return;
  const std::vector<int64_t>& choices = knobs_[at].choices;
  values[at] = choices[0];
  for (int64_t choice : choices) {
    if (choice != 0 && choice <= size) values[at] = choice;
  }
  if (size >= extent) values[at] = 0;
}

void ContractionPart::SetWord(std::string_view knob, std::string_view label,
                              KnobValues& values) const {
  const size_t at = Place(knob);
  if (at == knobs_.size()) return;
  if (const auto value = knobs_[at].Parse(label)) values[at] = *value;
}

// The most products at once, unless A would have to be spread out for it. Few
// rows do not pay for a packed copy of B.
const ProductForm* ContractionPart::DefaultForm() const {
  const Workload& w = context_.workload;
  if (shape_.Rows(w) < kStreamingRows) return nullptr;
  int64_t spread = 1;
  for (const std::vector<int>* group : {&shape_.batch, &shape_.m, &shape_.k}) {
    for (int index : *group) {
      const bool used = std::any_of(
          shape_.a->subscripts.begin(), shape_.a->subscripts.end(),
          [&](const Affine& form) { return form.Coeff(index) != 0; });
      if (used) spread *= Extent(index);
    }
  }
  const bool fits = spread <= 2 * w.tensors[shape_.a->tensor].Elements();
  for (auto form = forms_.rbegin(); form != forms_.rend(); ++form) {
    if (form->rows == 1 || fits) return &*form;
  }
  return nullptr;
}

// By default wherever it can be: fewer loads, and no element has to be spread
// over lanes.
bool ContractionPart::LoadsVectorsOfA(const ProductForm& products) const {
  if (!lanes_of_a_ || products.rows > 1) return false;
  const int inner = shape_.k.back();  // of the default order
  return ContiguousInA(inner) &&
         (products.depth == 1 || inner == shape_.group) &&
         Extent(inner) >= LanesOfA(products);
}

void ContractionPart::VisitRankedKernels(
    absl::FunctionRef<bool(const ContractionTiling&)> visit) const {
  const ProductForm* const form = DefaultForm();
  const ProductForm products = form != nullptr ? *form : ProductForm();
  const int group = form != nullptr ? shape_.group : -1;
  const int64_t a_lanes = LoadsVectorsOfA(products) ? LanesOfA(products) : 1;
  // Instructions with lanes move around each other more freely than the
  // registers allow when every one of them is taken.
  const int64_t spare = !lanes_of_a_ ? 0 : a_lanes > 1 ? 4 : 2;
  const auto kernel = [&](int64_t rows, int64_t vectors, int row_index) {
    return ContractionTiling{.lanes = target_lanes_,
                             .vectors = vectors,
                             .rows = rows,
                             .row_index = row_index,
                             .split_k = split_k_,
                             .products = products,
                             .group = group,
                             .a_lanes = a_lanes};
  };
  struct Kernel {
    double cycles;
    size_t place;
    int64_t rows, vectors;
    int row_index;
  };
  std::vector<Kernel> ranked;
  std::vector<int> row_indices = row_indices_;
  if (row_indices.empty()) row_indices.push_back(-1);
  const int64_t registers = std::max(4, context_.target.vector_registers);
  for (int row_index : row_indices) {
    for (int64_t rows : knobs_[Place("mr")].choices) {
      for (int64_t vectors : knobs_[Place("nv")].choices) {
        const ContractionTiling t = kernel(rows, vectors, row_index);
        if (rows > Extent(row_index) || rows % products.rows != 0 ||
            (a_lanes > 1 && rows > kRowsInVectors) ||
            t.Registers() + spare > registers ||
            (vectors - 1) * target_lanes_ >= Extent(shape_.vector)) {
          continue;
        }
        const TilingFacts facts(context_.workload, shape_, t);
        ranked.push_back(
            {facts.ModelCycles(), ranked.size(), rows, vectors, row_index});
      }
    }
  }
  // Ties go to the first: the innermost index, fewer rows. A heap, since mostly
  // one kernel is wanted.
  const auto slower = [](const Kernel& a, const Kernel& b) {
    return std::tie(a.cycles, a.place) > std::tie(b.cycles, b.place);
  };
  std::make_heap(ranked.begin(), ranked.end(), slower);
  while (!ranked.empty()) {
    const Kernel& k = ranked.front();
    if (visit(kernel(k.rows, k.vectors, k.row_index))) return;
    std::pop_heap(ranked.begin(), ranked.end(), slower);
    ranked.pop_back();
  }
}

// Blocks that keep a panel of B and a block of A in the second-level cache.
void ContractionPart::WishBlocks(const ContractionTiling& kernel,
                                 KnobValues& values) const {
  const Workload& w = context_.workload;
  const TilingFacts facts(w, shape_, kernel);
  const int64_t l2 = context_.hints.l2_bytes;
  const int64_t split = Extent(split_k_);
  const int64_t window = facts.KExtent() / split;
  const int64_t rows = shape_.Rows(w);
  const int64_t step_bytes = DTypeBytes(w.tensors[shape_.b->tensor].dtype) *
                             window;  // of one lane and summed element
  int64_t depth = l2 / 4 / (step_bytes * kernel.TileWidth());
  if (rows <= kStreamingRows) depth = kStreamingDepth;
  depth = std::max<int64_t>(depth, kStreamingDepth);
  SetSize("kc", depth, split, values);
  depth = std::min(depth, split);
  SetSize("mc", std::max(kernel.rows, l2 / 2 / (step_bytes * depth)),
          facts.RowExtent(), values);
  // Every index of m outside the block walks the block of B again.
  const bool walked_again = rows > facts.RowExtent();
  const int64_t room = walked_again ? l2 / 2 : context_.hints.l3_bytes / 2;
  SetSize("nc", std::max(kernel.TileWidth(), room / (step_bytes * depth)),
          facts.VectorExtent(), values);
  SetWord("order", rows <= kStreamingRows ? "knm" : "nkm", values);
  const int64_t b_bytes = step_bytes * split * facts.VectorExtent();
  // Products are summed from copies anyway: panels, unless windows overlap.
  const int64_t b_elements = w.tensors[shape_.b->tensor].Elements();
  int64_t panel_elements = facts.KExtent() * facts.VectorExtent();
  for (int index : shape_.n) panel_elements *= Extent(index);
  const bool grouped_panels =
      kernel.Grouped() && panel_elements <= 2 * b_elements;
  const bool pack_b = !shape_.b_contiguous || grouped_panels ||
                      (rows >= kRowsWorthPacking && b_bytes > l2);
  SetWord("pack_b", pack_b ? "panel" : "none", values);
  // Rows of A that lie whole pages apart fall into few sets of the cache.
  const int64_t row_bytes =
      kernel.row_index < 0 ? 0
                           : FlatForm(w, *shape_.a).Coeff(kernel.row_index) *
                                 DTypeBytes(w.tensors[shape_.a->tensor].dtype);
  const bool collide = kernel.rows > 4 && row_bytes != 0 &&
                       row_bytes % kPageBytes == 0 &&
                       facts.VectorExtent() > 4 * kernel.TileWidth();
  SetWord("pack_a", collide ? "block" : "none", values);
}

// The group and blocks that share the work best; larger blocks unless smaller
// ones gain something.
void ContractionPart::WishParallel(KnobValues& values) const {
  if (context_.threads <= 1) return;
  constexpr double kWorthwhile = 0.97;
  KnobValues best = values;
  double best_share = 1;
  const auto consider = [&](const KnobValues& candidate) {
    const ContractionTiling t = Decode(candidate);
    const double share = TilingFacts(context_.workload, shape_, t)
                             .ParallelShare(context_.threads);
    if (share < best_share * kWorthwhile &&
        !FirstViolation(constraints_, candidate)) {
      best = candidate;
      best_share = share;
    }
  };
  for (const char* group : {"batch", "m", "n"}) {
    KnobValues candidate = values;
    SetWord("par", group, candidate);
    if (candidate == values) continue;
    consider(candidate);
    const size_t blocks = Place(group == std::string_view("m") ? "mc" : "nc");
    for (size_t i = knobs_[blocks].choices.size(); i-- > 0;) {
      candidate[blocks] = knobs_[blocks].choices[i];
      consider(candidate);
    }
  }
  values = best;
}

std::optional<KnobValues> ContractionPart::Around(
    const ContractionTiling& kernel) const {
  KnobValues values;
  for (const Knob& knob : knobs_) {
    values.push_back(knob.name == "kc" || knob.name == "mc" || knob.name == "nc"
                         ? 0
                         : knob.choices[0]);
  }
  values[Place("vec")] = kernel.lanes;
  values[Place("mr")] = kernel.rows;
  values[Place("nv")] = kernel.vectors;
  if (const size_t at = Place("load_a"); at != knobs_.size()) {
    values[at] = kernel.a_lanes > 1;
  }
  if (const size_t at = Place("dot"); at != knobs_.size()) {
    values[at] = kernel.products.depth;
  }
  if (const size_t at = Place("rows_over"); at != knobs_.size()) {
    values[at] =
        std::find(row_indices_.begin(), row_indices_.end(), kernel.row_index) -
        row_indices_.begin();
  }
  const KnobValues plain = values;
  WishBlocks(kernel, values);
  WishParallel(values);
  if (!FirstViolation(constraints_, values)) return values;
  if (!FirstViolation(constraints_, plain)) return plain;
  return std::nullopt;
}

std::vector<KnobValues> ContractionPart::BestKernels(size_t count) const {
  std::vector<KnobValues> best;
  VisitRankedKernels([&](const ContractionTiling& kernel) {
    std::optional<KnobValues> values = Around(kernel);
    if (values) best.push_back(*std::move(values));
    return best.size() == count;
  });
  return best;
}

void ContractionPart::SetDefaults() {
  // One row and one vector without blocks are always legal.
  const KnobValues best = BestKernels(1)[0];
  for (size_t i = 0; i < knobs_.size(); ++i) knobs_[i].default_value = best[i];
}

std::vector<KnobValues> ContractionPart::Seeds() const {
  std::vector<KnobValues> seeds;
  const auto add = [&](KnobValues values) {
    Normalise(values);
    if (seeds.size() < kMaxSeeds && !FirstViolation(constraints_, values) &&
        std::find(seeds.begin(), seeds.end(), values) == seeds.end()) {
      seeds.push_back(std::move(values));
    }
  };
  const std::vector<KnobValues> best = BestKernels(kSeedKernels);
  for (const KnobValues& values : best) add(values);
  // Of the two best kernels, each other decision the other way.
  struct Change {
    const char* knob;
    const char* label;
  };
  for (size_t i = 0; i < std::min<size_t>(2, best.size()); ++i) {
    for (const Change& change :
         std::initializer_list<Change>{{"pack_b", "panel"},
                                       {"pack_b", "none"},
                                       {"pack_b", "whole"},
                                       {"pack_a", "block"},
                                       {"dot", "4"},
                                       {"dot", "1"},
                                       {"load_a", "vector"},
                                       {"load_a", "element"},
                                       {"unroll", "2"},
                                       {"unroll", "4"},
                                       {"order", "mnk"},
                                       {"inner", "mn"},
                                       {"kc", "all"},
                                       {"kc", "256"},
                                       {"mc", "112"},
                                       {"mc", "all"}}) {
      KnobValues values = best[i];
      SetWord(change.knob, change.label, values);
      add(std::move(values));
    }
  }
  return seeds;
}

}  // namespace regatta
