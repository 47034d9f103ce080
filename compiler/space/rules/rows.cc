#include "compiler/space/rules/rows.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/rows_shape.h"
#include "compiler/space/rules/stage_loops.h"

namespace regatta {
namespace {

struct RowsTiling {
  int64_t vec = 1, vectors = 1, rows = 1, unroll = 1;
  bool recompute = false, parallel = false;
};

// Writes the kernel of one run of stages.
class RowsEmitter {
 public:
  RowsEmitter(const RowsShape& shape, const RowsTiling& tiling,
              LoopBuilder& out)
      : shape_(shape), tiling_(tiling), out_(out), w_(out.workload()) {}

  void Emit() {
    out_.AddKernel(absl::StrCat("rows_", w_.tensors[StageAt(0).tensor].name),
                   Outer(0));
  }

 private:
  using Bind = std::function<Affine(int)>;

  const Stage& StageAt(int i) const { return w_.stages[shape_.first + i]; }
  int64_t RowExtent(int dim) const {
    return w_.tensors[StageAt(0).tensor].shape[dim];
  }
  int LastRowIndex(const Stage& stage) const {
    return stage.indices[shape_.row_dims - 1];
  }

  // Loops over all row dimensions but the last one, which is tiled.
  loop::StmtPtr Outer(int dim) {
    const loop::LoopKind kind = tiling_.parallel && dim == 0
                                    ? loop::LoopKind::kParallel
                                    : loop::LoopKind::kSerial;
    if (dim + 1 < shape_.row_dims) {
      return MakeLoop(out_, RowExtent(dim), kind, [&](const Affine& var) {
        row_ = std::vector<Affine>(row_.begin(), row_.begin() + dim);
        row_.push_back(var);
        return Outer(dim + 1);
      });
    }
    return ForTiles(out_, Affine(), RowExtent(dim), tiling_.rows, kind,
                    [&](const Affine& start, int64_t rows) {
                      row_.resize(dim);
                      row_.push_back(start);
                      return Stages(rows);
                    });
  }

  // All stages of `rows` rows; each block of rows has scratch of its own.
  loop::StmtPtr Stages(int64_t rows) {
    scratch_.clear();
    std::vector<loop::StmtPtr> body;
    for (int i = 0; i < shape_.count; ++i) {
      if (tiling_.recompute && shape_.recomputable[i]) continue;
      if (shape_.local[i]) {
        const Stage& stage = StageAt(i);
        const TensorDecl& tensor = w_.tensors[stage.tensor];
        scratch_[stage.tensor] =
            out_.AddBuffer({.name = absl::StrCat("row_", tensor.name),
                            .dtype = tensor.dtype,
                            .elements = rows * Inner(stage),
                            .scope = loop::Scope::kWorkspace,
                            .per_thread = tiling_.parallel});
      }
      body.push_back(OneStage(i, rows));
    }
    return loop::Block(std::move(body));
  }

  // Elements of one row of a stage's result.
  int64_t Inner(const Stage& stage) const {
    const std::vector<int64_t>& shape = w_.tensors[stage.tensor].shape;
    int64_t elements = 1;
    for (size_t d = shape_.row_dims; d < shape.size(); ++d) {
      elements *= shape[d];
    }
    return elements;
  }

  // Offset in a result's scratch; `subscripts` are bound.
  Affine ScratchOffset(const Stage& stage,
                       const std::vector<Affine>& subscripts) const {
    const std::vector<int64_t>& shape = w_.tensors[stage.tensor].shape;
    Affine offset = subscripts[shape_.row_dims - 1] - row_.back();
    for (size_t d = shape_.row_dims; d < shape.size(); ++d) {
      offset = offset * shape[d] + subscripts[d];
    }
    return offset;
  }

  loop::StmtPtr OneStage(int i, int64_t rows) {
    const Stage& stage = StageAt(i);
    std::map<int, IndexRange> ranges;
    for (int d = 0; d < shape_.row_dims; ++d) {
      const bool last = d + 1 == shape_.row_dims;
      ranges[stage.indices[d]] = {row_[d], last ? rows : 1};
    }
    StageTarget target = TensorTarget(out_, stage);
    if (const auto it = scratch_.find(stage.tensor); it != scratch_.end()) {
      target = {it->second, [this, &stage](const Bind& bind) {
                  std::vector<Affine> subscripts;
                  for (int index : stage.indices) {
                    subscripts.push_back(bind(index));
                  }
                  return ScratchOffset(stage, subscripts);
                }};
    }
    const auto hook = [this](const Expr& access, const Bind& bind) {
      return Read(access, bind);
    };
    return StageLoops(out_, stage, TilingOf(stage, rows), std::move(ranges),
                      std::move(target), hook)
        .Emit();
  }

  StageTiling TilingOf(const Stage& stage, int64_t rows) const {
    StageTiling t{.row_index = LastRowIndex(stage), .rows = rows};
    int64_t extent = 1;
    // Along the row: the index with the fewest strided accesses, a trailing
    // output index if there is a choice.
    int fewest = 0;
    const auto consider = [&](int index) {
      const int strided = StridedAccesses(w_, stage, index);
      if (t.vector_index >= 0 && strided >= fewest) return;
      t.vector_index = index;
      fewest = strided;
      extent = w_.indices[index].extent;
    };
    if (stage.indices.size() > static_cast<size_t>(shape_.row_dims)) {
      consider(stage.indices.back());
    }
    for (int index : stage.reduce_indices) consider(index);
    // Short rows take narrower and fewer vectors than the knobs say.
    t.lanes = tiling_.vec;
    while (t.lanes > 1 && t.lanes >= 2 * extent) t.lanes /= 2;
    t.vectors =
        std::max<int64_t>(1, std::min(tiling_.vectors, extent / t.lanes));
    t.unroll = tiling_.unroll;
    return t;
  }

  // A result of this run: from scratch, or computed again.
  std::optional<loop::ValuePtr> Read(const Expr& access, const Bind& bind) {
    for (int i = 0; i < shape_.count; ++i) {
      const Stage& stage = StageAt(i);
      if (stage.tensor != access.tensor) continue;
      std::vector<Affine> subscripts;
      for (const Affine& form : access.subscripts) {
        subscripts.push_back(BindForm(form, bind));
      }
      if (const auto it = scratch_.find(stage.tensor); it != scratch_.end()) {
        return loop::Load(out_.buffer(it->second), it->second,
                          ScratchOffset(stage, subscripts));
      }
      if (!tiling_.recompute || !shape_.recomputable[i]) return std::nullopt;
      const Bind there = [&](int index) {
        for (size_t d = 0; d < stage.indices.size(); ++d) {
          if (stage.indices[d] == index) return subscripts[d];
        }
        return bind(index);
      };
      // Rounded as if it had been stored.
      return loop::Cast(
          out_.Translate(stage.value, there,
                         [&](const Expr& inner) { return Read(inner, there); }),
          w_.tensors[stage.tensor].dtype);
    }
    return std::nullopt;
  }

  const RowsShape& shape_;
  const RowsTiling& tiling_;
  LoopBuilder& out_;
  const Workload& w_;
  std::vector<Affine> row_;     // bound row dimensions; the last: first row
  std::map<int, int> scratch_;  // tensor to buffer
};

class RowsPart : public Part {
 public:
  RowsPart(const SpaceContext& context, RowsShape shape);

  std::string_view name() const override { return "rows"; }
  int first_stage() const override { return shape_.first; }
  int stage_count() const override { return shape_.count; }
  const std::vector<Knob>& knobs() const override { return knobs_; }
  const std::vector<Constraint>& constraints() const override {
    return constraints_;
  }
  std::vector<KnobValues> Seeds() const override;
  void Emit(const KnobValues& values, LoopBuilder& out) const override {
    const RowsTiling tiling = Decode(values);
    RowsEmitter(shape_, tiling, out).Emit();
  }

 private:
  void Add(Knob knob, std::function<void(RowsTiling&, int64_t)> set) {
    knobs_.push_back(std::move(knob));
    setters_.push_back(std::move(set));
  }
  RowsTiling Decode(const KnobValues& values) const {
    RowsTiling tiling;
    for (size_t i = 0; i < values.size(); ++i) setters_[i](tiling, values[i]);
    return tiling;
  }
  void AddKnobs();
  void AddConstraints();

  const SpaceContext& context_;
  const RowsShape shape_;
  int64_t longest_ = 1;  // of the loops within a row
  int64_t rows_ = 1;     // extent of the last row dimension
  std::vector<Knob> knobs_;
  std::vector<std::function<void(RowsTiling&, int64_t)>> setters_;
  std::vector<Constraint> constraints_;
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
  std::vector<std::unique_ptr<Part>> Match(const SpaceContext& context,
                                           int first_stage) const override {
    std::vector<std::unique_ptr<Part>> parts;
    RowsShape shape = MatchRows(context.workload, first_stage);
    if (shape.count > 0) {
      parts.push_back(std::make_unique<RowsPart>(context, std::move(shape)));
    }
    return parts;
  }
};

}  // namespace

const SpaceRule& RowsRule() {
  static const RowsRuleImpl rule;
  return rule;
}

}  // namespace regatta
