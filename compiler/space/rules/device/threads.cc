#include "compiler/space/rules/device/threads.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/device/device_nest.h"
#include "compiler/space/rules/knobbed_part.h"
#include "compiler/space/rules/stage_loops.h"

namespace regatta {
namespace {

// Threads that spell out more than this much code take long to build.
constexpr int64_t kMaxCodeSize = 256;

struct ThreadsTiling {
  // Threads of a group along the contiguous output index and the one before.
  int64_t tx = 1, ty = 1;
  int64_t lanes = 1, vectors = 1;  // of a thread, contiguous
  int64_t rows = 1;                // of a thread
  int64_t unroll = 1;              // of the innermost reduction loop
};

class ThreadsPart : public KnobbedPart<ThreadsTiling> {
 public:
  ThreadsPart(const SpaceContext& context, int stage);

  void Emit(const KnobValues& values, LoopBuilder& out) const override;

 private:
  const Stage& stage() const { return context_.workload.stages[stage_index_]; }
  bool Reduces() const { return stage().reduction != Reduction::kNone; }
  int64_t Extent(int index) const {
    return index < 0 ? 1 : context_.workload.indices[index].extent;
  }
  void AddKnobs();
  void AddConstraints();
  void SetDefaults();

  const SpaceContext& context_;
  const int stage_index_;
  int x_ = -1;  // the contiguous output index
  int y_ = -1;  // the one before it
};

ThreadsPart::ThreadsPart(const SpaceContext& context, int stage_index)
    : context_(context), stage_index_(stage_index) {
  const std::vector<int>& indices = stage().indices;
  if (!indices.empty()) x_ = indices.back();
  if (indices.size() > 1) y_ = indices[indices.size() - 2];
  AddKnobs();
  AddConstraints();
  SetDefaults();
}

void ThreadsPart::AddKnobs() {
  // Sizes that leave at least one whole piece, and 1.
  const auto up_to = [](std::vector<int64_t> sizes, int64_t most) {
    std::erase_if(sizes, [&](int64_t s) { return s > 1 && s > most; });
    return sizes;
  };
  const int64_t lanes = context_.target.Lanes(4);
  Add(NumberKnob("vec", "elements of one vector access",
                 up_to({1, 2, 4, 8, 16}, std::min(lanes, Extent(x_)))),
      [](ThreadsTiling& t, int64_t v) { t.lanes = v; });
  Add(NumberKnob("vectors", "vectors of a thread",
                 up_to({1, 2, 4}, Extent(x_))),
      [](ThreadsTiling& t, int64_t v) { t.vectors = v; });
  if (y_ >= 0) {
    Add(NumberKnob("rows", "rows of a thread", up_to({1, 2, 4}, Extent(y_))),
        [](ThreadsTiling& t, int64_t v) { t.rows = v; });
  }
  Add(NumberKnob("tx", "threads of a group along the contiguous index",
                 up_to({1, 4, 8, 16, 32, 64, 128, 256}, 2 * Extent(x_))),
      [](ThreadsTiling& t, int64_t v) { t.tx = v; });
  if (y_ >= 0) {
    Add(NumberKnob("ty", "threads of a group along the index before",
                   up_to({1, 2, 4, 8, 16, 32}, 2 * Extent(y_))),
        [](ThreadsTiling& t, int64_t v) { t.ty = v; });
  }
  if (Reduces()) {
    Add(NumberKnob("unroll", "copies of the innermost reduction step",
                   up_to({1, 2, 4, 8}, Extent(stage().reduce_indices.back()))),
        [](ThreadsTiling& t, int64_t v) { t.unroll = v; });
  }
}

// The smallest values of all knobs satisfy every constraint.
void ThreadsPart::AddConstraints() {
  using Violation = std::optional<std::string>;
  const auto add = [&](std::string name, auto check) {
    constraints_.push_back(
        {std::move(name), [this, check](const KnobValues& values) {
           return Violation(check(Decode(values)));
         }});
  };
  add("group_size", [this](const ThreadsTiling& t) {
    return GroupViolation(context_.target, t.tx * t.ty);
  });
  add("vectors_fit", [this](const ThreadsTiling& t) {
    if (t.vectors == 1 || t.vectors * t.lanes <= Extent(x_)) {
      return Violation();
    }
    return Violation(
        absl::StrCat(t.vectors, "*", t.lanes, " elements of ", Extent(x_)));
  });
  add("registers", [this](const ThreadsTiling& t) {
    return RegisterViolation(context_.target,
                             t.rows * t.vectors * t.lanes + 16);
  });
  add("code_size", [](const ThreadsTiling& t) {
    const int64_t size = t.rows * t.vectors * t.lanes * t.unroll;
    if (size <= kMaxCodeSize) return Violation();
    return Violation(
        absl::StrCat(size, " operations of at most ", kMaxCodeSize));
  });
}

// Vectors as wide as the device likes them, and a group as large as common.
void ThreadsPart::SetDefaults() {
  KnobValues values;
  for (const Knob& knob : knobs_) values.push_back(knob.choices[0]);
  const bool contiguous =
      x_ >= 0 && StridedAccesses(context_.workload, stage(), x_) == 0;
  Wish("vec", contiguous ? context_.target.Lanes(4) : 1, values);
  Wish("tx", 64, values);
  Wish("ty", Extent(x_) < 32 ? 16 : 1, values);
  Wish("unroll", 4, values);
  for (size_t i = 0; i < knobs_.size(); ++i) {
    knobs_[i].default_value = values[i];
  }
  Wish("rows", 4, values);
  seeds_.push_back(values);
}

void ThreadsPart::Emit(const KnobValues& values, LoopBuilder& out) const {
  const ThreadsTiling t = Decode(values);
  const int64_t width = t.lanes * t.vectors;
  std::map<int, int64_t> tiled;
  if (x_ >= 0) tiled[x_] = CeilDiv(CeilDiv(Extent(x_), width), t.tx);
  if (y_ >= 0) tiled[y_] = CeilDiv(CeilDiv(Extent(y_), t.rows), t.ty);
  const StageTiling tiling{.vector_index = x_,
                           .lanes = t.lanes,
                           .vectors = t.vectors,
                           .row_index = y_,
                           .rows = t.rows,
                           .unroll = t.unroll};
  const StageTarget target = TensorTarget(out, stage());
  const auto body = [&](const std::map<int, Affine>& piece,
                        const std::array<Affine, 2>& thread) {
    std::map<int, IndexRange> ranges;
    for (int index : stage().indices) ranges[index] = {piece.at(index), 1};
    const auto nest = [&] {
      return StageLoops(out, stage(), tiling, ranges, target).Emit();
    };
    const auto along_x = [&] {
      if (x_ < 0) return nest();
      return ForPiece(piece.at(x_) * t.tx + thread[0], Extent(x_), width,
                      [&](const Affine& start, int64_t extent) {
                        ranges[x_] = {start, extent};
                        return nest();
                      });
    };
    if (y_ < 0) return along_x();
    return ForPiece(piece.at(y_) * t.ty + thread[1], Extent(y_), t.rows,
                    [&](const Affine& start, int64_t extent) {
                      ranges[y_] = {start, extent};
                      return along_x();
                    });
  };
  out.AddKernel(
      absl::StrCat("threads_", context_.workload.tensors[stage().tensor].name),
      OverGrid(out, GridAxes(context_.workload, stage(), tiled), {t.tx, t.ty},
               body));
}

class ThreadsRuleImpl : public SpaceRule {
 public:
  std::string_view name() const override { return "threads"; }
  std::vector<PartOffer> Match(const SpaceContext& context,
                               int first_stage) const override {
    return {{.make = [&context, first_stage] {
      return std::make_unique<ThreadsPart>(context, first_stage);
    }}};
  }
};

}  // namespace

const SpaceRule& ThreadsRule() {
  static const ThreadsRuleImpl rule;
  return rule;
}

}  // namespace regatta
