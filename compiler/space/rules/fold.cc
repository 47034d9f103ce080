#include "compiler/space/rules/fold.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/fold_shape.h"
#include "compiler/space/rules/knobbed_part.h"

namespace regatta {
namespace {

class FoldPart : public KnobbedPart<FoldTiling> {
 public:
  FoldPart(const SpaceContext& context, FoldShape shape);

  void Emit(const KnobValues& values, LoopBuilder& out) const override {
    const FoldTiling tiling = Decode(values);
    EmitFold(shape_, tiling, out);
  }

 private:
  using Violation = std::optional<std::string>;

  const Stage& stage() const { return context_.workload.stages[shape_.stage]; }
  int64_t Extent(int index) const {
    return context_.workload.indices[index].extent;
  }
  void AddKnobs();
  void AddConstraints();
  void SetDefaults();

  const SpaceContext& context_;
  const FoldShape shape_;
  int64_t lanes_ = 1;
};

FoldPart::FoldPart(const SpaceContext& context, FoldShape shape)
    : context_(context), shape_(std::move(shape)) {
  // Everything is computed in types of four bytes.
  lanes_ = context.target.Lanes(4);
  while (lanes_ > 1 && lanes_ / 2 >= Extent(shape_.vector)) lanes_ /= 2;
  AddKnobs();
  AddConstraints();
  SetDefaults();
}

void FoldPart::AddKnobs() {
  const auto up_to = [](std::vector<int64_t> sizes, int64_t most) {
    std::erase_if(sizes, [&](int64_t size) { return size > most; });
    return sizes;
  };
  std::vector<int64_t> widths = {lanes_};
  if (lanes_ > 4) widths.insert(widths.begin(), lanes_ / 2);
  Add(NumberKnob("vec", "lanes of one vector", std::move(widths)),
      [](FoldTiling& t, int64_t x) { t.lanes = x; });
  Add(NumberKnob("vectors", "vectors per step", {1, 2, 4, 8}),
      [](FoldTiling& t, int64_t x) { t.vectors = x; });
  Add(NumberKnob("depth", "reduced steps per pass over the result",
                 up_to({1, 2, 3, 4, 6, 8, 12, 16, 32}, Extent(shape_.folded))),
      [](FoldTiling& t, int64_t x) { t.depth = x; });
  if (shape_.vector_reduced) {
    Add(NumberKnob("rows", "results at once",
                   up_to({1, 2, 4, 8}, Extent(shape_.inside.back()))),
        [](FoldTiling& t, int64_t x) { t.rows = x; });
  }
  Add(NumberKnob("unroll", "copies of the innermost reduction step",
                 {1, 2, 4, 8}),
      [](FoldTiling& t, int64_t x) { t.unroll = x; });
  Add(SizeKnob("block", "results folded before the next ones",
               Extent(shape_.inside.back()), {256, 1024, 4096, 16384, 65536}),
      [](FoldTiling& t, int64_t x) { t.block = x; });
  if (context_.threads > 1) {
    Add(WordKnob("par", "which loop runs in parallel", {"none", "outer"}),
        [](FoldTiling& t, int64_t x) { t.parallel = x == 1; });
  }
}

// The smallest values of all knobs satisfy every constraint.
void FoldPart::AddConstraints() {
  const auto add = [&](std::string name, auto check) {
    constraints_.push_back(
        {std::move(name), [this, check](const KnobValues& values) {
           return Violation(check(Decode(values)));
         }});
  };
  const int64_t registers = std::max(4, context_.target.vector_registers);
  add("register_budget", [registers](const FoldTiling& t) {
    const int64_t used = t.rows * t.vectors + t.vectors;
    if (used <= registers) return Violation();
    return Violation(absl::StrCat(t.rows, "*", t.vectors, "+", t.vectors, " = ",
                                  used, " of ", registers,
                                  " vector registers"));
  });
  add("vectors_fit", [this](const FoldTiling& t) {
    const int64_t extent = Extent(shape_.vector);
    if (t.vectors == 1 || t.vectors * t.lanes <= extent) return Violation();
    return Violation(
        absl::StrCat(t.vectors, "*", t.lanes, " elements of ", extent));
  });
  // Reduced loops inside the folded one are the innermost.
  add("unroll_fits", [this](const FoldTiling& t) {
    const int innermost = stage().reduce_indices.back();
    const int64_t steps = shape_.vector_reduced
                              ? std::max<int64_t>(1, Extent(shape_.vector) /
                                                         (t.lanes * t.vectors))
                          : innermost == shape_.folded ? t.depth
                                                       : Extent(innermost);
    if (t.unroll <= std::max<int64_t>(1, steps)) return Violation();
    return Violation(
        absl::StrCat(t.unroll, " copies of a loop of ", steps, " steps"));
  });
}

// The input as one stream; a few rows at once and other decisions the other
// way as a seed.
void FoldPart::SetDefaults() {
  KnobValues values;
  for (const Knob& knob : knobs_) values.push_back(knob.choices[0]);
  Wish("vec", lanes_, values);
  Wish("par", 1, values);
  for (size_t i = 0; i < knobs_.size(); ++i) {
    if (knobs_[i].name == "block") values[i] = 0;
  }
  struct Plan {
    int64_t vectors, depth, unroll;
  };
  for (const Plan& w :
       {Plan{2, 1, 1}, Plan{2, 16, 1}, Plan{4, 4, 4}, Plan{2, 8, 8},
        Plan{8, 2, 2}, Plan{4, 8, 8}, Plan{2, 4, 4}, Plan{4, 16, 4}}) {
    KnobValues seed = values;
    Wish("vectors", w.vectors, seed);
    Wish("depth", w.depth, seed);
    Wish("unroll", w.unroll, seed);
    if (std::find(seeds_.begin(), seeds_.end(), seed) == seeds_.end()) {
      seeds_.push_back(std::move(seed));
    }
  }
  for (size_t i = 0; i < knobs_.size(); ++i) {
    knobs_[i].default_value = seeds_[0][i];
  }
}

class FoldRuleImpl : public SpaceRule {
 public:
  std::string_view name() const override { return "fold"; }
  std::vector<PartOffer> Match(const SpaceContext& context,
                               int first_stage) const override {
    const auto shape = MatchFold(context.workload, first_stage);
    if (!shape) return {};
    return {{.make = [&context, shape = *shape] {
      return std::make_unique<FoldPart>(context, shape);
    }}};
  }
};

}  // namespace

const SpaceRule& FoldRule() {
  static const FoldRuleImpl rule;
  return rule;
}

}  // namespace regatta
