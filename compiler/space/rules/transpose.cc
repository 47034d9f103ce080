#include "compiler/space/rules/transpose.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/knobbed_part.h"
#include "compiler/space/rules/streaming.h"
#include "compiler/space/rules/transpose_emitter.h"

namespace regatta {
namespace {

class TransposePart : public KnobbedPart<TransposeTiling> {
 public:
  TransposePart(const SpaceContext& context, TransposeShape shape);

  void Normalise(KnobValues& values) const override;
  void Emit(const KnobValues& values, LoopBuilder& out) const override {
    const TransposeTiling tiling = Decode(values);
    TransposeEmitter(shape_, tiling, out).Emit();
  }

 private:
  int Tensor() const { return context_.workload.stages[shape_.stage].tensor; }
  int64_t Extent(int index) const {
    return context_.workload.indices[index].extent;
  }
  TransposeTiling Decode(const KnobValues& values) const;
  void AddKnobs();
  void AddConstraints();
  void SetDefaults();

  const SpaceContext& context_;
  const TransposeShape shape_;
  int64_t lanes_ = 2;
};

TransposePart::TransposePart(const SpaceContext& context, TransposeShape shape)
    : context_(context), shape_(std::move(shape)) {
  // Everything is computed in types of four bytes. A tile of `lanes_` rows
  // needs as many registers.
  lanes_ = std::max<int64_t>(2, context.target.Lanes(4));
  AddKnobs();
  AddConstraints();
  SetDefaults();
}

void TransposePart::AddKnobs() {
  std::vector<int64_t> widths = {lanes_};
  if (lanes_ > 2) widths.insert(widths.begin(), lanes_ / 2);
  Add(NumberKnob("vec", "rows and columns of a tile turned in registers",
                 std::move(widths)),
      [](TransposeTiling& t, int64_t x) { t.lanes = x; });
  Add(SizeKnob("along", "elements per block along the operand's rows",
               Extent(shape_.along), {16, 32, 64, 128, 256, 512}),
      [](TransposeTiling& t, int64_t x) { t.along_block = x; });
  Add(SizeKnob("across", "elements per block along the result's rows",
               Extent(shape_.across), {16, 32, 64, 128, 256, 512}),
      [](TransposeTiling& t, int64_t x) { t.across_block = x; });
  Add(WordKnob("outside", "which loop over blocks is the outer one",
               {"along", "across"}),
      [](TransposeTiling& t, int64_t x) { t.across_outside = x == 1; });
  Add(WordKnob("inside",
               "which loop over the tiles of a block is the inner one",
               {"along", "across"}),
      [](TransposeTiling& t, int64_t x) { t.across_inside = x == 1; });
  if (MayStream(context_, Tensor())) {
    Add(StoresKnob(),
        [](TransposeTiling& t, int64_t x) { t.streaming = x == 1; });
  }
  if (context_.threads > 1) {
    Add(WordKnob("par", "which loop runs in parallel", {"none", "outer"}),
        [](TransposeTiling& t, int64_t x) { t.parallel = x == 1; });
  }
}

TransposeTiling TransposePart::Decode(const KnobValues& values) const {
  TransposeTiling t = KnobbedPart::Decode(values);
  if (t.along_block == 0) t.along_block = Extent(shape_.along);
  if (t.across_block == 0) t.across_block = Extent(shape_.across);
  return t;
}

// Orders of loops that do not run become the first.
void TransposePart::Normalise(KnobValues& values) const {
  const TransposeTiling t = Decode(values);
  if (t.along_block == Extent(shape_.along) ||
      t.across_block == Extent(shape_.across)) {
    values[Place("outside")] = 0;
  }
  if (t.along_block < 2 * t.lanes || t.across_block < 2 * t.lanes) {
    values[Place("inside")] = 0;
  }
}

// Whole extents satisfy every constraint.
void TransposePart::AddConstraints() {
  constraints_.push_back({"tile_fits", [this](const KnobValues& values) {
                            const TransposeTiling t = Decode(values);
                            std::optional<std::string> violation;
                            for (const auto& [block, index] :
                                 {std::pair(t.along_block, shape_.along),
                                  std::pair(t.across_block, shape_.across)}) {
                              if (block < t.lanes && block < Extent(index)) {
                                violation = absl::StrCat(
                                    "tiles of ", t.lanes,
                                    " elements in blocks of ", block);
                              }
                            }
                            return violation;
                          }});
}

// A few rows of the operand are read from end to end: as many streams as the
// prefetchers follow. Smaller blocks as seeds.
void TransposePart::SetDefaults() {
  KnobValues plain;
  for (const Knob& knob : knobs_) plain.push_back(knob.default_value);
  plain[Place("vec")] = lanes_;
  if (context_.threads > 1) plain[Place("par")] = 1;
  const size_t stores = Place(kStoresKnob);
  if (StreamsByDefault(context_, Tensor())) plain[stores] = 1;
  const auto with = [&](int64_t along, int64_t across, int64_t outside,
                        int64_t inside) {
    KnobValues values = plain;
    const auto size = [&](std::string_view name, int64_t wish) {
      const size_t at = Place(name);
      const std::vector<int64_t>& choices = knobs_[at].choices;
      values[at] =
          std::count(choices.begin(), choices.end(), wish) > 0 ? wish : 0;
    };
    size("along", along);
    size("across", across);
    values[Place("outside")] = outside;
    values[Place("inside")] = inside;
    Normalise(values);
    return values;
  };
  for (const KnobValues& values :
       {with(0, 0, 0, 0), with(512, 16, 0, 0), with(512, 512, 1, 0),
        with(64, 64, 0, 0), with(16, 16, 0, 0), with(32, 512, 1, 1),
        with(64, 16, 1, 0), with(0, 64, 0, 1)}) {
    if (!FirstViolation(constraints_, values) &&
        std::find(seeds_.begin(), seeds_.end(), values) == seeds_.end()) {
      seeds_.push_back(values);
    }
  }
  if (!seeds_.empty() && stores < knobs_.size()) {
    KnobValues other = seeds_[0];
    other[stores] = 1 - other[stores];
    seeds_.insert(seeds_.begin() + 1, std::move(other));
  }
  for (size_t i = 0; i < knobs_.size(); ++i) {
    knobs_[i].default_value = seeds_.empty() ? plain[i] : seeds_[0][i];
  }
}

class TransposeRuleImpl : public SpaceRule {
 public:
  std::string_view name() const override { return "transpose"; }
  std::vector<PartOffer> Match(const SpaceContext& context,
                               int first_stage) const override {
    const auto shape = MatchTranspose(context.workload, first_stage);
    if (!shape) return {};
    return {{.make = [&context, shape = *shape] {
      return std::make_unique<TransposePart>(context, shape);
    }}};
  }
};

}  // namespace

const SpaceRule& TransposeRule() {
  static const TransposeRuleImpl rule;
  return rule;
}

}  // namespace regatta
