#include "compiler/space/rules/device/tiles.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/device/device_nest.h"
#include "compiler/space/rules/device/tiles_emitter.h"
#include "compiler/space/rules/knobbed_part.h"

namespace regatta {
namespace {

// Multiply-adds of vectors that a thread's code may spell out.
constexpr int64_t kMaxCodeSize = 512;

class TilesPart : public KnobbedPart<TilesTiling> {
 public:
  TilesPart(const SpaceContext& context, ContractionShape shape,
            int stage_count);

  void Normalise(KnobValues& values) const override;
  void Emit(const KnobValues& values, LoopBuilder& out) const override {
    const TilesTiling tiling = Decode(values);
    TilesEmitter(shape_, tiling, stage_count_, out).Emit();
  }

 private:
  int64_t Extent(int index) const {
    return index < 0 ? 1 : context_.workload.indices[index].extent;
  }
  TilesTiling Decode(const KnobValues& values) const;
  void AddThreadKnobs();
  void AddMemoryKnobs();
  void AddConstraints();
  void SetDefaults();

  const SpaceContext& context_;
  const ContractionShape shape_;
  const int stage_count_;
  std::vector<int> row_indices_;  // candidates, longest first
  int split_k_ = -1;              // the longest summed index
};

TilesPart::TilesPart(const SpaceContext& context, ContractionShape shape,
                     int stage_count)
    : context_(context),
      shape_(std::move(shape)),
      stage_count_(stage_count),
      row_indices_(shape_.m) {
  // Of equally long ones the inner first.
  std::sort(row_indices_.begin(), row_indices_.end(), [&](int a, int b) {
    return std::pair(Extent(a), a) > std::pair(Extent(b), b);
  });
  for (int index : shape_.k) {
    if (split_k_ < 0 || Extent(index) > Extent(split_k_)) split_k_ = index;
  }
  AddThreadKnobs();
  AddMemoryKnobs();
  AddConstraints();
  SetDefaults();
}

TilesTiling TilesPart::Decode(const KnobValues& values) const {
  TilesTiling t;
  t.row_index = row_indices_.empty() ? -1 : row_indices_[0];
  t.split_k = split_k_;
  t = KnobbedPart::Decode(values, std::move(t));
  t.k_slice = t.local_a || t.local_b ? std::min(t.k_slice, Extent(split_k_))
                                     : Extent(split_k_);
  if (!t.local_a) t.pad = 0;
  return t;
}

void TilesPart::AddThreadKnobs() {
  const int64_t columns = Extent(shape_.vector);
  int64_t rows = 1;
  for (int index : row_indices_) rows = std::max(rows, Extent(index));
  // Sizes up to the first that covers everything.
  const auto cover = [](std::vector<int64_t> sizes, int64_t extent) {
    std::erase_if(sizes, [&](int64_t s) { return s > 1 && s >= 2 * extent; });
    return sizes;
  };
  std::vector<int64_t> lanes = {1};
  for (int64_t l : {2, 4, 8, 16}) {
    if (l <= context_.target.Lanes(4) && columns % l == 0) lanes.push_back(l);
  }
  Add(NumberKnob("vec", "elements of one vector access", std::move(lanes)),
      [](TilesTiling& t, int64_t x) { t.lanes = x; });
  Add(NumberKnob("vectors", "vectors of a thread", cover({1, 2, 4}, columns)),
      [](TilesTiling& t, int64_t x) { t.vectors = x; });
  Add(NumberKnob("rows", "rows of a thread",
                 cover({1, 2, 3, 4, 6, 8, 12, 16}, rows)),
      [](TilesTiling& t, int64_t x) { t.rows = x; });
  Add(NumberKnob("tx", "threads of a group along a row",
                 cover({1, 2, 4, 8, 16, 32}, columns)),
      [](TilesTiling& t, int64_t x) { t.tx = x; });
  Add(NumberKnob("ty", "threads of a group along a column",
                 cover({1, 2, 4, 8, 16, 32}, rows)),
      [](TilesTiling& t, int64_t x) { t.ty = x; });
  if (row_indices_.size() > 1) {
    Add(WordKnob("rows_over", "output dimension of a tile's rows",
                 DimensionLabels(context_.workload.stages[shape_.stage],
                                 row_indices_)),
        [this](TilesTiling& t, int64_t x) { t.row_index = row_indices_[x]; });
  }
}

void TilesPart::AddMemoryKnobs() {
  // A that varies with the columns has no tile of its own.
  std::vector<std::string> labels = {"none", "b"};
  if (!shape_.vector_in_a) labels.insert(labels.end(), {"a", "ab"});
  Add(WordKnob("local", "operands that a group keeps in local memory",
               std::move(labels)),
      [](TilesTiling& t, int64_t x) {
        t.local_b = x == 1 || x == 3;
        t.local_a = x >= 2;
      });
  std::vector<int64_t> slices;
  for (int64_t s : {4, 8, 16, 32, 64}) {
    if (s == 4 || s < 2 * Extent(split_k_)) slices.push_back(s);
  }
  Add(NumberKnob("kc", "summed elements in local memory", std::move(slices)),
      [](TilesTiling& t, int64_t x) { t.k_slice = x; });
  Add(NumberKnob("unroll", "copies of the innermost summing step",
                 {1, 2, 4, 8}),
      [](TilesTiling& t, int64_t x) { t.unroll = x; });
  Add(NumberKnob("pad", "elements between rows of the local tile", {0, 1, 4}),
      [](TilesTiling& t, int64_t x) { t.pad = x; });
  const Workload& w = context_.workload;
  if (context_.target.image_width > 0 && FitsImage(w, shape_)) {
    Add(WordKnob("b_from", "where the operand in vectors is read",
                 {"memory", "image"}),
        [](TilesTiling& t, int64_t x) { t.image_b = x == 1; });
  }
  // Results of another type would be further off than it allows.
  const std::vector<int> outputs = w.TensorsWithRole(TensorRole::kOutput);
  if (context_.target.Has("cl_khr_fp16") && shape_.plain_products &&
      w.tensors[shape_.a->tensor].dtype == DType::kF16 &&
      std::all_of(outputs.begin(), outputs.end(), [&](int tensor) {
        return w.tensors[tensor].dtype == DType::kF16;
      })) {
    Add(NumberKnob("f16_sums",
                   "products summed in f16 at a time, then in f32; 1: none",
                   {1, 2, 4, 8}),
        [](TilesTiling& t, int64_t x) { t.half_sums = x; });
  }
}

// The smallest values of all knobs satisfy every constraint.
void TilesPart::AddConstraints() {
  using Violation = std::optional<std::string>;
  const auto add = [&](std::string name, auto check) {
    constraints_.push_back(
        {std::move(name), [this, check](const KnobValues& values) {
           return Violation(check(Decode(values)));
         }});
  };
  add("group_size", [this](const TilesTiling& t) {
    return GroupViolation(context_.target, t.tx * t.ty);
  });
  add("local_memory", [this](const TilesTiling& t) {
    const auto bytes = [&](const Expr& access) {
      return DTypeBytes(context_.workload.tensors[access.tensor].dtype);
    };
    return LocalViolation(context_.target,
                          LocalElementsA(t) * bytes(*shape_.a) +
                              LocalElementsB(t) * bytes(*shape_.b));
  });
  add("registers", [this](const TilesTiling& t) {
    const int64_t width = t.lanes * t.vectors;
    const int64_t halves = t.half_sums > 1 ? t.rows * width / 2 : 0;
    return RegisterViolation(context_.target,
                             t.rows * width + halves + t.rows + width + 16);
  });
  add("image_pixels", [](const TilesTiling& t) {
    if (!t.image_b || t.lanes % loop::kPixelElements == 0) return Violation();
    return Violation(absl::StrCat("vectors of ", t.lanes,
                                  " elements hold no whole pixels of four"));
  });
  add("image_or_local", [](const TilesTiling& t) {
    if (!t.image_b || !t.local_b) return Violation();
    return Violation("an image is not copied to local memory");
  });
  add("image_size", [this](const TilesTiling& t) {
    if (!t.image_b) return Violation();
    const TensorDecl& b = context_.workload.tensors[shape_.b->tensor];
    return ImageViolation(context_.target,
                          b.shape.back() / loop::kPixelElements,
                          b.Elements() / b.shape.back());
  });
  add("f16_sums_fit", [](const TilesTiling& t) {
    if (t.half_sums <= t.unroll) return Violation();
    return Violation(absl::StrCat(t.half_sums, " products in a loop of ",
                                  t.unroll, " copies"));
  });
  const auto add_fit = [&](std::string name, const char* what, auto of) {
    add(std::move(name), [what, of](const TilesTiling& t) {
      const auto [smaller, extent] = of(t);
      if (smaller < extent) return Violation();
      return Violation(
          absl::StrCat("all but one ", what, " cover ", extent, " already"));
    });
  };
  // A tile with threads or vectors that never have anything to do.
  add_fit("columns_fit", "thread of a row", [this](const TilesTiling& t) {
    return std::pair<int64_t, int64_t>(
        (t.vectors - 1) * t.tx * t.lanes + (t.tx - 1) * t.lanes,
        Extent(shape_.vector));
  });
  add_fit("rows_fit", "thread of a column", [this](const TilesTiling& t) {
    return std::pair<int64_t, int64_t>((t.ty - 1) * t.rows,
                                       Extent(t.row_index));
  });
  add("unroll_fits", [](const TilesTiling& t) {
    if (t.unroll <= t.k_slice) return Violation();
    return Violation(
        absl::StrCat(t.unroll, " copies of a loop of ", t.k_slice, " steps"));
  });
  add("code_size", [](const TilesTiling& t) {
    const int64_t size = t.rows * t.vectors * t.unroll;
    if (size <= kMaxCodeSize) return Violation();
    return Violation(
        absl::StrCat(size, " vector operations of at most ", kMaxCodeSize));
  });
}

// Without tiles in local memory nothing is sliced, and without one of A there
// is nothing to pad.
void TilesPart::Normalise(KnobValues& values) const {
  const TilesTiling t = Decode(values);
  if (!t.local_a && !t.local_b)
    values[Place("kc")] = knobs_[Place("kc")].choices[0];
  if (!t.local_a) values[Place("pad")] = 0;
}

// Devices with wide vectors are processors: few threads with large tiles.
// Others get the group of 16 x 16 threads that most of them like.
void TilesPart::SetDefaults() {
  struct Plan {
    int64_t vec, vectors, rows, tx, ty, local, kc, unroll;
    int64_t image = 0, half_sums = 1;
  };
  static constexpr Plan kWide[] = {{16, 1, 4, 4, 4, 0, 16, 4},
                                   {16, 1, 8, 2, 4, 0, 16, 2},
                                   {16, 2, 6, 1, 8, 1, 32, 2},
                                   {8, 2, 4, 4, 4, 3, 16, 4},
                                   {16, 1, 12, 4, 1, 0, 16, 1}};
  static constexpr Plan kNarrow[] = {
      {4, 1, 4, 16, 16, 3, 16, 8},    {4, 2, 8, 16, 16, 3, 8, 4},
      {4, 1, 8, 16, 8, 3, 16, 4},     {4, 1, 4, 8, 8, 0, 16, 4},
      {2, 1, 2, 16, 16, 3, 32, 8},    {4, 1, 8, 8, 8, 0, 16, 4, 1},
      {4, 1, 8, 8, 8, 0, 16, 4, 1, 4}};
  const bool wide = context_.target.Lanes(4) >= 8;
  for (const Plan& plan :
       wide ? absl::MakeConstSpan(kWide) : absl::MakeConstSpan(kNarrow)) {
    KnobValues values;
    for (const Knob& knob : knobs_) values.push_back(knob.choices[0]);
    Wish("tx", plan.tx, values);
    Wish("ty", plan.ty, values);
    Wish("vec", plan.vec, values);
    Wish("rows", plan.rows, values);
    Wish("vectors", plan.vectors, values);
    if (plan.local <= 1 || !shape_.vector_in_a) {
      Wish("local", plan.local, values);
    }
    Wish("kc", plan.kc, values);
    Wish("unroll", plan.unroll, values);
    Wish("b_from", plan.image, values);
    Wish("f16_sums", plan.half_sums, values);
    Normalise(values);
    if (std::find(seeds_.begin(), seeds_.end(), values) == seeds_.end()) {
      seeds_.push_back(std::move(values));
    }
  }
  for (size_t i = 0; i < knobs_.size(); ++i) {
    knobs_[i].default_value = seeds_[0][i];
  }
}

class TilesRuleImpl : public SpaceRule {
 public:
  std::string_view name() const override { return "tiles"; }
  std::vector<PartOffer> Match(const SpaceContext& context,
                               int first_stage) const override {
    const auto shape = MatchContraction(context.workload, first_stage);
    if (!shape) return {};
    std::vector<PartOffer> offers;
    for (int stages = 1 + shape->fusable_stages; stages > 0; --stages) {
      offers.push_back(
          {.stage_count = stages, .make = [&context, shape = *shape, stages] {
             return std::make_unique<TilesPart>(context, shape, stages);
           }});
    }
    return offers;
  }
};

}  // namespace

const SpaceRule& TilesRule() {
  static const TilesRuleImpl rule;
  return rule;
}

}  // namespace regatta
