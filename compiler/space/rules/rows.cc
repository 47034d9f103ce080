#include "compiler/space/rules/rows.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/knobbed_part.h"
#include "compiler/space/rules/rows_emitter.h"
#include "compiler/space/rules/rows_shape.h"
#include "compiler/space/rules/streaming.h"

namespace regatta {
namespace {

// Whether `expr` takes a few additions and multiplications.
bool IsCheap(const Expr& expr) {
  const bool itself =
      expr.kind == Expr::Kind::kBinary
          ? expr.binary != BinaryOp::kDiv
          : expr.kind != Expr::Kind::kUnary || expr.unary == UnaryOp::kNeg;
  return itself && std::all_of(expr.operands.begin(), expr.operands.end(),
                               [](const ExprPtr& e) { return IsCheap(*e); });
}

class RowsPart : public KnobbedPart<RowsTiling> {
 public:
  RowsPart(const SpaceContext& context, RowsShape shape);

  std::vector<KnobValues> Seeds() const override;
  void Emit(const KnobValues& values, LoopBuilder& out) const override {
    const RowsTiling tiling = Decode(values);
    RowsEmitter(shape_, tiling, out).Emit();
  }

 private:
  void AddKnobs();
  void AddConstraints();

  const SpaceContext& context_;
  const RowsShape shape_;
  int Largest() const;
  int64_t longest_ = 1;  // of the loops within a row
  int64_t rows_ = 1;     // extent of the last row dimension
};

RowsPart::RowsPart(const SpaceContext& context, RowsShape shape)
    : context_(context), shape_(std::move(shape)) {
  const Workload& w = context.workload;
  for (int i = 0; i < shape_.count; ++i) {
    const Stage& stage = w.stages[shape_.first + i];
    rows_ = w.indices[stage.indices[shape_.row_dims - 1]].extent;
    if (stage.indices.size() > static_cast<size_t>(shape_.row_dims)) {
      longest_ = std::max(longest_, w.indices[stage.indices.back()].extent);
    }
    for (int index : stage.reduce_indices) {
      longest_ = std::max(longest_, w.indices[index].extent);
    }
  }
  AddKnobs();
  AddConstraints();
  // The widest vectors, and as many as there are, up to four.
  const auto set = [&](size_t knob, int64_t value) {
    const int64_t before = knobs_[knob].default_value;
    knobs_[knob].default_value = value;
    KnobValues values;
    for (const Knob& k : knobs_) values.push_back(k.default_value);
    if (FirstViolation(constraints_, values)) {
      knobs_[knob].default_value = before;
    }
  };
  for (int64_t vec : knobs_[0].choices) set(0, vec);
  for (int64_t vectors : {2, 4}) set(1, vectors);
  if (context.threads > 1) set(knobs_.size() - 1, 1);
  if (StreamsByDefault(context, Largest())) set(Place(kStoresKnob), 1);
  // What is cheap is computed again sooner than it is stored and loaded.
  bool cheap = true;
  for (int i = 0; i < shape_.count; ++i) {
    const Stage& stage = w.stages[shape_.first + i];
    cheap = cheap && (!shape_.recomputable[i] || IsCheap(*stage.value));
  }
  for (size_t knob = 0; cheap && knob < knobs_.size(); ++knob) {
    if (knobs_[knob].name == "intermediates") set(knob, 1);
  }
}

// The largest tensor that the run stores.
int RowsPart::Largest() const {
  const Workload& w = context_.workload;
  int largest = w.stages[shape_.first + shape_.count - 1].tensor;
  for (int i = 0; i < shape_.count; ++i) {
    const int tensor = w.stages[shape_.first + i].tensor;
    if (!shape_.local[i] &&
        w.tensors[tensor].Elements() > w.tensors[largest].Elements()) {
      largest = tensor;
    }
  }
  return largest;
}

void RowsPart::AddKnobs() {
  const int64_t lanes = context_.target.Lanes(4);
  std::vector<int64_t> widths;
  for (int64_t w = std::min<int64_t>(4, lanes); w <= lanes; w *= 2) {
    widths.push_back(w);
  }
  if (widths[0] >= 2 * longest_) widths.push_back(1);
  Add(NumberKnob("vec", "lanes of one vector", std::move(widths)),
      [](RowsTiling& t, int64_t x) { t.vec = x; });
  Add(NumberKnob("vectors", "vectors per step along the row", {1, 2, 4, 8}),
      [](RowsTiling& t, int64_t x) { t.vectors = x; });
  Add(NumberKnob("rows", "rows in flight", {1, 2, 4, 8}),
      [](RowsTiling& t, int64_t x) { t.rows = x; });
  Add(NumberKnob("unroll", "copies of a reduction's step along the row",
                 {1, 2, 4}),
      [](RowsTiling& t, int64_t x) { t.unroll = x; });
  if (std::count(shape_.recomputable.begin(), shape_.recomputable.end(), true) >
      0) {
    Add(WordKnob("intermediates", "element-wise stages between reductions",
                 {"stored", "recomputed"}),
        [](RowsTiling& t, int64_t x) { t.recompute = x == 1; });
  }
  if (DividesByRowValue(context_.workload, shape_)) {
    Add(WordKnob("division", "how a row is divided by its own number",
                 {"exact", "reciprocal"}),
        [](RowsTiling& t, int64_t x) { t.reciprocal = x == 1; });
  }
  if (MayStream(context_, Largest())) {
    Add(StoresKnob(), [](RowsTiling& t, int64_t x) { t.streaming = x == 1; });
  }
  if (context_.threads > 1) {
    Add(WordKnob("par", "which loop runs in parallel", {"none", "rows"}),
        [](RowsTiling& t, int64_t x) { t.parallel = x == 1; });
  }
}

void RowsPart::AddConstraints() {
  constraints_.push_back({"register_budget", [this](const KnobValues& values) {
                            const RowsTiling t = Decode(values);
                            const int64_t used = t.rows * t.vectors + t.vectors;
                            const int64_t have =
                                std::max(4, context_.target.vector_registers);
                            std::optional<std::string> violation;
                            if (used > have) {
                              violation = absl::StrCat(
                                  t.rows, "*", t.vectors, "+", t.vectors, " = ",
                                  used, " of ", have, " vector registers");
                            }
                            return violation;
                          }});
  constraints_.push_back(
      {"vectors_fit", [this](const KnobValues& values) {
         const RowsTiling t = Decode(values);
         std::optional<std::string> violation;
         if (t.vec > 1 && t.vec >= 2 * longest_) {
           violation = absl::StrCat("vectors of ", t.vec, " lanes for rows of ",
                                    longest_);
         } else if (t.vectors > 1 && t.vec * t.vectors > longest_) {
           violation = absl::StrCat(t.vectors, "*", t.vec,
                                    " elements for rows of ", longest_);
         }
         return violation;
       }});
  constraints_.push_back({"rows_fit", [this](const KnobValues& values) {
                            const RowsTiling t = Decode(values);
                            std::optional<std::string> violation;
                            if (t.rows > rows_) {
                              violation =
                                  absl::StrCat(t.rows, " rows of ", rows_);
                            }
                            return violation;
                          }});
  constraints_.push_back(
      {"unroll_fits", [this](const KnobValues& values) {
         const RowsTiling t = Decode(values);
         const int64_t trips =
             std::max<int64_t>(1, longest_ / (t.vec * t.vectors));
         std::optional<std::string> violation;
         if (t.unroll > trips) {
           violation =
               absl::StrCat(t.unroll, " copies of a loop of ", trips, " steps");
         }
         return violation;
       }});
}

std::vector<KnobValues> RowsPart::Seeds() const {
  KnobValues defaults;
  for (const Knob& knob : knobs_) defaults.push_back(knob.default_value);
  std::vector<KnobValues> seeds;
  for (size_t i = 1; i < knobs_.size(); ++i) {
    if (knobs_[i].name == "par") continue;
    for (int64_t choice : knobs_[i].choices) {
      KnobValues values = defaults;
      values[i] = choice;
      if (choice == knobs_[i].default_value) continue;
      if (!FirstViolation(constraints_, values)) {
        seeds.push_back(std::move(values));
      }
    }
  }
  return seeds;
}

class RowsRuleImpl : public SpaceRule {
 public:
  std::string_view name() const override { return "rows"; }
  std::vector<PartOffer> Match(const SpaceContext& context,
                               int first_stage) const override {
    const RowsShape shape = MatchRows(context.workload, first_stage);
    if (shape.count == 0) return {};
    return {{.stage_count = shape.count, .make = [&context, shape] {
               return std::make_unique<RowsPart>(context, shape);
             }}};
  }
};

}  // namespace

const SpaceRule& RowsRule() {
  static const RowsRuleImpl rule;
  return rule;
}

}  // namespace regatta
