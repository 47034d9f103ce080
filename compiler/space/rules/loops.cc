#include "compiler/space/rules/loops.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/knobbed_part.h"
#include "compiler/space/rules/stage_loops.h"
#include "compiler/space/rules/streaming.h"

namespace regatta {
namespace {

// Values of the knobs, by name.
struct LoopsValues {
  bool over_reduced = false;  // lanes run over a reduced index
  int64_t vec = 1, vectors = 1, rows = 1, unroll = 1;
  int64_t block = 0;  // elements of the vectorised output index; 0: all
  bool reversed = false, streaming = false, parallel = false;
};

class LoopsPart : public KnobbedPart<LoopsValues> {
 public:
  LoopsPart(const SpaceContext& context, int stage);

  std::vector<KnobValues> Seeds() const override;
  void Normalise(KnobValues& values) const override;
  void Emit(const KnobValues& values, LoopBuilder& out) const override;

 private:
  const Stage& stage() const { return context_.workload.stages[stage_index_]; }
  int64_t Extent(int index) const {
    return index < 0 ? 1 : context_.workload.indices[index].extent;
  }
  bool Reduces() const { return reduced_index_ >= 0; }
  int VectorIndex(const LoopsValues& v) const {
    return v.over_reduced ? reduced_index_ : output_index_;
  }
  int RowIndex(const LoopsValues& v) const;
  // Trips of the innermost serial reduction loop, which `unroll` expands.
  int64_t InnerTrips(const LoopsValues& v) const;
  std::vector<bool> UsefulAxes() const;
  void AddKnobs();
  void AddConstraints();
  void SetDefaults();
  LoopsValues Decode(const KnobValues& values) const;
  KnobValues Defaults() const;

  const SpaceContext& context_;
  const int stage_index_;
  int output_index_ = -1;           // the one that is contiguous in the result
  int reduced_index_ = -1;          // the one that vectorises best
  int lanes_ = 1;                   // of the target
  bool only_axis_reduced_ = false;  // where lanes have no choice
};

LoopsPart::LoopsPart(const SpaceContext& context, int stage_index)
    : context_(context), stage_index_(stage_index) {
  // Everything is computed in types of four bytes.
  lanes_ = context.target.Lanes(4);
  if (!stage().indices.empty()) output_index_ = stage().indices.back();
  int fewest = 0;
  for (int index : stage().reduce_indices) {
    const int strided = StridedAccesses(context.workload, stage(), index);
    if (reduced_index_ < 0 || strided <= fewest) {
      reduced_index_ = index;
      fewest = strided;
    }
  }
  AddKnobs();
  AddConstraints();
  SetDefaults();
}

int LoopsPart::RowIndex(const LoopsValues& v) const {
  if (!Reduces()) return -1;
  const std::vector<int>& indices = stage().indices;
  if (v.over_reduced) return output_index_;
  return indices.size() < 2 ? -1 : indices[indices.size() - 2];
}

int64_t LoopsPart::InnerTrips(const LoopsValues& v) const {
  if (!Reduces()) return 1;
  if (v.over_reduced) {
    return std::max<int64_t>(1, Extent(reduced_index_) / (v.vec * v.vectors));
  }
  return Extent(stage().reduce_indices.back());
}

// What lanes may run over, as values of `over_reduced`: both unless one has
// fewer strided accesses and enough elements.
std::vector<bool> LoopsPart::UsefulAxes() const {
  if (output_index_ < 0 || !Reduces()) {
    if (output_index_ >= 0) return {false};
    return Reduces() ? std::vector<bool>{true} : std::vector<bool>{};
  }
  const auto strided = [&](int index) {
    return StridedAccesses(context_.workload, stage(), index);
  };
  const int output = strided(output_index_), reduced = strided(reduced_index_);
  if (output < reduced && Extent(output_index_) >= lanes_) return {false};
  if (reduced < output && Extent(reduced_index_) >= lanes_) return {true};
  return {false, true};
}

void LoopsPart::AddKnobs() {
  const std::vector<bool> axes = UsefulAxes();
  if (axes.size() > 1) {
    Add(WordKnob("lanes_over", "what the lanes of a vector run over",
                 {"output", "reduced"}),
        [](LoopsValues& v, int64_t x) { v.over_reduced = x == 1; });
  } else if (!axes.empty()) {
    only_axis_reduced_ = axes[0];
  }
  // Scalars only where nothing else fits: they are never faster and, on large
  // shapes, slow enough to cost a search many other trials.
  std::vector<int64_t> widths;
  for (int64_t w = std::min<int64_t>(4, lanes_); w <= lanes_; w *= 2) {
    widths.push_back(w);
  }
  for (bool reduced : axes) {
    const int64_t extent = Extent(reduced ? reduced_index_ : output_index_);
    if (widths[0] > 1 && widths[0] >= 2 * extent) widths.push_back(1);
  }
  if (!axes.empty()) {
    Add(NumberKnob("vec", "lanes of one vector", std::move(widths)),
        [](LoopsValues& v, int64_t x) { v.vec = x; });
    Add(NumberKnob("vectors", "vectors per step", {1, 2, 4, 8}),
        [](LoopsValues& v, int64_t x) { v.vectors = x; });
  }
  if (Reduces() && output_index_ >= 0) {
    Add(NumberKnob("rows", "output rows that share a pass", {1, 2, 4, 8}),
        [](LoopsValues& v, int64_t x) { v.rows = x; });
  }
  if (Reduces()) {
    Add(NumberKnob("unroll", "copies of the innermost reduction step",
                   {1, 2, 4}),
        [](LoopsValues& v, int64_t x) { v.unroll = x; });
  }
  if (output_index_ >= 0 && stage().indices.size() > 1) {
    Add(SizeKnob("block", "output elements before the next outer step",
                 Extent(output_index_), {64, 256, 1024, 4096}),
        [](LoopsValues& v, int64_t x) { v.block = x; });
  }
  if (stage().indices.size() > 2) {
    Add(WordKnob("order", "order of the outer loops", {"natural", "reversed"}),
        [](LoopsValues& v, int64_t x) { v.reversed = x == 1; });
  }
  // A reduction's result takes a small part of its time.
  if (!Reduces() && MayStream(context_, stage().tensor)) {
    Add(StoresKnob(), [](LoopsValues& v, int64_t x) { v.streaming = x == 1; });
  }
  if (context_.threads > 1 && output_index_ >= 0) {
    Add(WordKnob("par", "which loop runs in parallel", {"none", "outer"}),
        [](LoopsValues& v, int64_t x) { v.parallel = x == 1; });
  }
}

LoopsValues LoopsPart::Decode(const KnobValues& values) const {
  return KnobbedPart::Decode(values, {.over_reduced = only_axis_reduced_});
}

// The smallest values of all knobs satisfy every constraint.
void LoopsPart::AddConstraints() {
  constraints_.push_back({"register_budget", [this](const KnobValues& values) {
                            const LoopsValues v = Decode(values);
                            const int64_t used = v.rows * v.vectors + v.vectors;
                            const int64_t have =
                                std::max(4, context_.target.vector_registers);
                            std::optional<std::string> violation;
                            if (Reduces() && used > have) {
                              violation = absl::StrCat(
                                  v.rows, "*", v.vectors, "+", v.vectors, " = ",
                                  used, " of ", have, " vector registers");
                            }
                            return violation;
                          }});
  constraints_.push_back(
      {"vectors_fit", [this](const KnobValues& values) {
         const LoopsValues v = Decode(values);
         const int64_t extent = Extent(VectorIndex(v));
         std::optional<std::string> violation;
         if (v.vec > 1 && v.vec >= 2 * extent) {
           violation = absl::StrCat("vectors of ", v.vec, " lanes for ", extent,
                                    " elements");
         } else if (v.vectors > 1 && v.vec * v.vectors > extent) {
           violation =
               absl::StrCat(v.vectors, "*", v.vec, " elements of ", extent);
         }
         return violation;
       }});
  constraints_.push_back({"rows_fit", [this](const KnobValues& values) {
                            const LoopsValues v = Decode(values);
                            const int64_t extent = Extent(RowIndex(v));
                            std::optional<std::string> violation;
                            if (v.rows > extent) {
                              violation =
                                  absl::StrCat(v.rows, " rows of ", extent);
                            }
                            return violation;
                          }});
  constraints_.push_back({"unroll_fits", [this](const KnobValues& values) {
                            const LoopsValues v = Decode(values);
                            std::optional<std::string> violation;
                            if (v.unroll > InnerTrips(v)) {
                              violation = absl::StrCat(v.unroll,
                                                       " copies of a loop of ",
                                                       InnerTrips(v), " steps");
                            }
                            return violation;
                          }});
}

// The first legal values, trying the wishes for each knob in order of
// preference; the smallest values come last and are always legal.
void LoopsPart::SetDefaults() {
  const auto set = [&](std::string_view name, int64_t value) {
    for (Knob& knob : knobs_) {
      if (knob.name == name &&
          std::count(knob.choices.begin(), knob.choices.end(), value) > 0) {
        knob.default_value = value;
      }
    }
  };
  const Workload& w = context_.workload;
  const bool over_reduced =
      Reduces() &&
      (output_index_ < 0 ||
       (StridedAccesses(w, stage(), output_index_) >
        StridedAccesses(w, stage(), reduced_index_)) ||
       (Extent(output_index_) < lanes_ && Extent(reduced_index_) >= lanes_));
  set("lanes_over", over_reduced ? 1 : 0);
  if (context_.threads > 1) set("par", 1);
  if (StreamsByDefault(context_, stage().tensor)) set(kStoresKnob, 1);
  // Lanes over a reduced index stream through rows: one row at a time keeps
  // the prefetcher on one stream.
  const std::vector<int64_t> row_wishes =
      over_reduced ? std::vector<int64_t>{1} : std::vector<int64_t>{4, 2, 1};
  for (int64_t vec = lanes_; vec >= 1; vec /= 2) {
    for (int64_t vectors : {4, 2, 1}) {
      for (int64_t rows : row_wishes) {
        set("vec", vec);
        set("vectors", vectors);
        set("rows", rows);
        if (!FirstViolation(constraints_, Defaults())) return;
      }
    }
  }
}

KnobValues LoopsPart::Defaults() const {
  KnobValues values;
  for (const Knob& knob : knobs_) values.push_back(knob.default_value);
  return values;
}

std::vector<KnobValues> LoopsPart::Seeds() const {
  std::vector<KnobValues> seeds;
  for (const std::string_view name : std::initializer_list<std::string_view>{
           kStoresKnob, "vectors", "rows", "lanes_over", "block", "unroll"}) {
    for (size_t i = 0; i < knobs_.size(); ++i) {
      if (knobs_[i].name != name) continue;
      for (int64_t choice : knobs_[i].choices) {
        KnobValues values = Defaults();
        values[i] = choice;
        Normalise(values);
        if (choice != knobs_[i].default_value && seeds.size() < 6 &&
            !FirstViolation(constraints_, values)) {
          seeds.push_back(std::move(values));
        }
      }
    }
  }
  return seeds;
}

void LoopsPart::Normalise(KnobValues& values) const {
  const LoopsValues v = Decode(values);
  for (size_t i = 0; i < knobs_.size(); ++i) {
    // Lanes over a reduced index leave the output to the outer loops.
    if (knobs_[i].name == "block" && v.over_reduced) values[i] = 0;
  }
}

void LoopsPart::Emit(const KnobValues& values, LoopBuilder& out) const {
  const LoopsValues v = Decode(values);
  StageTiling tiling{.vector_index = VectorIndex(v),
                     .lanes = v.vec,
                     .vectors = v.vectors,
                     .row_index = RowIndex(v),
                     .rows = v.rows,
                     .unroll = v.unroll,
                     .reversed = v.reversed,
                     .parallel = v.parallel};
  StageTarget target = TensorTarget(out, stage());
  target.streaming = v.streaming;
  const int64_t extent = Extent(output_index_);
  const auto nest = [&](const Affine& start, int64_t size) {
    std::map<int, IndexRange> ranges;
    if (output_index_ >= 0) ranges[output_index_] = {start, size};
    return StageLoops(out, stage(), tiling, std::move(ranges), target).Emit();
  };
  const int64_t block = v.block == 0 || v.over_reduced ? extent : v.block;
  loop::LoopKind kind = loop::LoopKind::kSerial;
  if (v.parallel && extent / block > 1) {
    kind = loop::LoopKind::kParallel;
    tiling.parallel = false;
  }
  out.AddKernel(
      absl::StrCat("loops_", context_.workload.tensors[stage().tensor].name),
      ForTiles(out, Affine(), extent, block, kind, nest));
}

class LoopsRuleImpl : public SpaceRule {
 public:
  std::string_view name() const override { return "loops"; }
  std::vector<PartOffer> Match(const SpaceContext& context,
                               int first_stage) const override {
    return {{.make = [&context, first_stage] {
      return std::make_unique<LoopsPart>(context, first_stage);
    }}};
  }
};

}  // namespace

const SpaceRule& LoopsRule() {
  static const LoopsRuleImpl rule;
  return rule;
}

}  // namespace regatta
