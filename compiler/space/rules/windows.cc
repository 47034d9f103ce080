#include "compiler/space/rules/windows.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/knobbed_part.h"
#include "compiler/space/rules/streaming.h"
#include "compiler/space/rules/windows_emitter.h"
#include "compiler/space/rules/windows_shape.h"

namespace regatta {
namespace {

// Vector operations that a candidate may spell out.
constexpr int64_t kMaxCodeSize = 1536;

class WindowsPart : public KnobbedPart<WindowsTiling> {
 public:
  WindowsPart(const SpaceContext& context, WindowsShape shape, int stage_count);

  void Emit(const KnobValues& values, LoopBuilder& out) const override {
    const WindowsTiling tiling = Decode(values);
    WindowsEmitter(shape_, tiling, stage_count_, out).Emit();
  }

 private:
  using Violation = std::optional<std::string>;

  const Stage& stage() const { return context_.workload.stages[shape_.stage]; }
  int64_t Extent(int index) const {
    return index < 0 ? 1 : context_.workload.indices[index].extent;
  }
  // What the last stage gives.
  int Result() const {
    return context_.workload.stages[shape_.stage + stage_count_ - 1].tensor;
  }
  // Taps along the innermost index of the window, all spelled out.
  int64_t InnerTaps() const { return Extent(stage().reduce_indices.back()); }
  void AddKnobs();
  void AddConstraints();
  void SetDefaults();
  int64_t Registers(const WindowsTiling& t) const;
  // Tiles of one size each that the code spells out, in elements of `index`.
  int64_t Emitted(int index, int64_t tile) const;
  int64_t CodeSize(const WindowsTiling& t) const;

  const SpaceContext& context_;
  const WindowsShape shape_;
  const int stage_count_;
  int64_t lanes_ = 1;
};

WindowsPart::WindowsPart(const SpaceContext& context, WindowsShape shape,
                         int stage_count)
    : context_(context), shape_(std::move(shape)), stage_count_(stage_count) {
  // Everything is computed in types of four bytes.
  lanes_ = context.target.Lanes(4);
  while (lanes_ > 1 && lanes_ / 2 >= Extent(shape_.vector)) lanes_ /= 2;
  AddKnobs();
  AddConstraints();
  SetDefaults();
}

void WindowsPart::AddKnobs() {
  const auto up_to = [](std::vector<int64_t> sizes, int64_t most) {
    std::erase_if(sizes, [&](int64_t size) { return size > most; });
    return sizes;
  };
  std::vector<int64_t> widths = {lanes_};
  if (lanes_ > 4) widths.insert(widths.begin(), lanes_ / 2);
  Add(NumberKnob("vec", "lanes of one vector", std::move(widths)),
      [](WindowsTiling& t, int64_t x) { t.lanes = x; });
  Add(NumberKnob(
          "nv", "vectors of the register block",
          up_to({1, 2, 4, 8},
                std::max<int64_t>(1, CeilDiv(Extent(shape_.vector), lanes_)))),
      [](WindowsTiling& t, int64_t x) { t.vectors = x; });
  if (shape_.inner >= 0) {
    Add(NumberKnob("inner",
                   "windows of the register block along the inner "
                   "image dimension",
                   up_to({1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16},
                         Extent(shape_.inner))),
        [](WindowsTiling& t, int64_t x) { t.inner = x; });
  }
  if (shape_.outer >= 0) {
    Add(NumberKnob("outer",
                   "windows of the register block along the outer "
                   "image dimension",
                   up_to({1, 2, 3, 4}, Extent(shape_.outer))),
        [](WindowsTiling& t, int64_t x) { t.outer = x; });
  }
  if (shape_.inner >= 0) {
    std::vector<std::string> places = {"inside", "middle"};
    if (shape_.outer >= 0) places.push_back("outside");
    Add(WordKnob("place", "where the loop over vectors stands",
                 std::move(places)),
        [](WindowsTiling& t, int64_t x) {
          t.place = static_cast<WindowsTiling::Vectors>(x);
        });
  }
  if (stage().reduce_indices.size() > 1) {
    Add(WordKnob("taps", "which part of the window is spelled out",
                 {"all", "row"}),
        [](WindowsTiling& t, int64_t x) { t.all_taps = x == 0; });
  }
  if (MayStream(context_, Result())) {
    Add(StoresKnob(),
        [](WindowsTiling& t, int64_t x) { t.streaming = x == 1; });
  }
  if (context_.threads > 1) {
    Add(WordKnob("par", "which loop runs in parallel", {"none", "outer"}),
        [](WindowsTiling& t, int64_t x) { t.parallel = x == 1; });
  }
}

// Accumulators, what a row of windows reads at one row of taps, one operand.
int64_t WindowsPart::Registers(const WindowsTiling& t) const {
  return t.vectors * (t.outer * t.inner + t.inner + 1);
}

int64_t WindowsPart::Emitted(int index, int64_t tile) const {
  if (index < 0) return 1;
  int64_t elements = 0;
  for (const Segment& segment :
       InteriorAndEdges(context_.workload, stage(), index)) {
    elements += (segment.extent >= tile ? tile : 0) + segment.extent % tile;
  }
  return elements;
}

int64_t WindowsPart::CodeSize(const WindowsTiling& t) const {
  const int64_t vectors =
      CeilDiv(Emitted(shape_.vector, t.lanes * t.vectors), t.lanes);
  const int64_t taps = t.all_taps ? shape_.taps : InnerTaps();
  return Emitted(shape_.inner, t.inner) * Emitted(shape_.outer, t.outer) *
         vectors * (taps + stage_count_);
}

// The smallest values of all knobs, with one row of taps spelled out, satisfy
// every constraint.
void WindowsPart::AddConstraints() {
  const auto add = [&](std::string name, auto check) {
    constraints_.push_back(
        {std::move(name), [this, check](const KnobValues& values) {
           return Violation(check(Decode(values)));
         }});
  };
  const int64_t registers = std::max(4, context_.target.vector_registers);
  add("register_budget", [this, registers](const WindowsTiling& t) {
    const int64_t used = Registers(t);
    const bool smallest = t.vectors * t.outer * t.inner == 1;
    if (used <= registers || smallest) return Violation();
    return Violation(absl::StrCat(t.vectors, "*(", t.outer, "*", t.inner, "+",
                                  t.inner, "+1) = ", used, " of ", registers,
                                  " vector registers"));
  });
  add("vectors_fit", [this](const WindowsTiling& t) {
    const int64_t extent = Extent(shape_.vector);
    if ((t.vectors - 1) * t.lanes < extent) return Violation();
    return Violation(absl::StrCat(t.vectors, " vectors of ", t.lanes,
                                  " lanes for ", extent, " elements"));
  });
  add("code_size", [this](const WindowsTiling& t) {
    const int64_t size = CodeSize(t);
    const bool smallest = t.vectors * t.outer * t.inner == 1 &&
                          (!t.all_taps || stage().reduce_indices.size() == 1);
    if (size <= kMaxCodeSize || smallest) return Violation();
    return Violation(
        absl::StrCat(size, " vector operations of at most ", kMaxCodeSize));
  });
}

// The largest block of a few shapes that is legal; each other decision the
// other way as a seed.
void WindowsPart::SetDefaults() {
  const auto with = [&](KnobValues values, std::string_view name,
                        int64_t value) {
    const size_t at = Place(name);
    if (at == knobs_.size()) return values;
    const std::vector<int64_t>& choices = knobs_[at].choices;
    values[at] = choices[0];
    for (int64_t choice : choices) {
      if (choice <= value) values[at] = choice;
    }
    return values;
  };
  KnobValues plain;
  for (const Knob& knob : knobs_) plain.push_back(knob.choices[0]);
  plain = with(plain, "vec", lanes_);
  plain = with(plain, "par", 1);
  const bool streams = StreamsByDefault(context_, Result());
  plain = with(plain, kStoresKnob, streams ? 1 : 0);
  std::vector<KnobValues> wishes;
  struct Block {
    int64_t vectors, inner, outer;
  };
  for (const Block& b :
       {Block{1, 1, 4}, Block{4, 1, 2}, Block{8, 1, 2}, Block{2, 2, 1},
        Block{2, 4, 1}, Block{1, 4, 2}, Block{4, 1, 1}, Block{1, 1, 1}}) {
    KnobValues values = with(plain, "nv", b.vectors);
    values = with(values, "inner", b.inner);
    values = with(values, "outer", b.outer);
    if (FirstViolation(constraints_, values)) values = with(values, "taps", 1);
    wishes.push_back(values);
    if (wishes.size() == 1) {
      wishes.push_back(with(values, kStoresKnob, streams ? 0 : 1));
    }
    wishes.push_back(with(values, "place", 1));
  }
  std::erase_if(wishes, [&](const KnobValues& values) {
    return FirstViolation(constraints_, values).has_value();
  });
  for (size_t i = 0; i < knobs_.size(); ++i) {
    knobs_[i].default_value = wishes[0][i];
  }
  for (KnobValues& values : wishes) {
    if (std::find(seeds_.begin(), seeds_.end(), values) == seeds_.end()) {
      seeds_.push_back(std::move(values));
    }
  }
}

class WindowsRuleImpl : public SpaceRule {
 public:
  std::string_view name() const override { return "windows"; }
  // With every stage that can be fused first, then with ever fewer.
  std::vector<PartOffer> Match(const SpaceContext& context,
                               int first_stage) const override {
    const auto shape = MatchWindows(context.workload, first_stage);
    if (!shape) return {};
    std::vector<PartOffer> offers;
    for (int stages = 1 + shape->fusable_stages; stages > 0; --stages) {
      offers.push_back(
          {.stage_count = stages, .make = [&context, shape = *shape, stages] {
             return std::make_unique<WindowsPart>(context, shape, stages);
           }});
    }
    return offers;
  }
};

}  // namespace

const SpaceRule& WindowsRule() {
  static const WindowsRuleImpl rule;
  return rule;
}

}  // namespace regatta
