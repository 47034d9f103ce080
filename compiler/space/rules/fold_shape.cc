#include "compiler/space/rules/fold_shape.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/contraction_shape.h"
#include "compiler/space/rules/loop_nest.h"

namespace regatta {
namespace {

using loop::LoopKind;
using loop::StmtPtr;

// Elements that an access of the stage reads in all.
int64_t Touched(const Workload& w, const Stage& stage, const Affine& form) {
  int64_t elements = 1;
  for (const std::vector<int>* group :
       {&stage.indices, &stage.reduce_indices}) {
    for (int index : *group) {
      if (form.Coeff(index) != 0) elements *= w.indices[index].extent;
    }
  }
  return elements;
}

class FoldEmitter {
 public:
  FoldEmitter(const FoldShape& shape, const FoldTiling& tiling,
              LoopBuilder& out)
      : shape_(shape),
        tiling_(tiling),
        out_(out),
        target_(TensorTarget(out, stage())) {}

  void Emit() {
    const Workload& w = out_.workload();
    const TensorDecl& tensor = w.tensors[stage().tensor];
    parallel_left_ = tiling_.parallel;
    const bool narrow = tensor.dtype != stage().accumulator;
    if (narrow) {
      target_.buffer = out_.AddBuffer({.name = "partial",
                                       .dtype = stage().accumulator,
                                       .elements = tensor.Elements(),
                                       .scope = loop::Scope::kWorkspace});
    }
    out_.AddKernel(absl::StrCat("fold_", tensor.name), Outside(0));
    if (narrow) {
      out_.AddKernel(absl::StrCat("round_", tensor.name), Round(tensor));
    }
  }

 private:
  const Stage& stage() const { return out_.workload().stages[shape_.stage]; }
  int64_t Extent(int index) const {
    return out_.workload().indices[index].extent;
  }
  LoopKind NextKind(int64_t trips) {
    if (!parallel_left_ || trips < 2) return LoopKind::kSerial;
    parallel_left_ = false;
    return LoopKind::kParallel;
  }

  StmtPtr Outside(size_t depth) {
    if (depth < shape_.outside.size()) {
      const int index = shape_.outside[depth];
      return MakeLoop(out_, Extent(index), NextKind(Extent(index)),
                      [&](const Affine& var) {
                        ranges_[index] = {var, 1};
                        return Outside(depth + 1);
                      });
    }
    const int last = shape_.inside.back();
    const int64_t extent = Extent(last);
    const int64_t block = tiling_.block == 0 ? extent : tiling_.block;
    return ForTiles(out_, Affine(), extent, block, NextKind(extent / block),
                    [&](const Affine& start, int64_t size) {
                      ranges_[last] = {start, size};
                      return Fold();
                    });
  }

  // The first pass writes the result, the others join it.
  StmtPtr Fold() {
    const int64_t extent = Extent(shape_.folded);
    const int64_t depth = std::min(tiling_.depth, extent);
    std::vector<StmtPtr> parts = {Pass(Affine(), depth, Reduction::kNone)};
    parts.push_back(ForTiles(out_, Affine(depth), extent - depth, depth,
                             LoopKind::kSerial,
                             [&](const Affine& start, int64_t size) {
                               return Pass(start, size, stage().reduction);
                             }));
    return loop::Block(std::move(parts));
  }

  StmtPtr Pass(const Affine& start, int64_t size, Reduction accumulate) {
    std::map<int, IndexRange> ranges = ranges_;
    ranges[shape_.folded] = {start, size};
    StageTarget target = target_;
    target.accumulate = accumulate;
    StageTiling tiling{
        .vector_index = shape_.vector,
        .lanes = tiling_.lanes,
        .vectors = tiling_.vectors,
        .row_index = shape_.vector_reduced ? shape_.inside.back() : -1,
        .rows = tiling_.rows,
        .unroll = tiling_.unroll};
    return StageLoops(out_, stage(), tiling, std::move(ranges),
                      std::move(target))
        .Emit();
  }

  // The finished results in the tensor's own type.
  StmtPtr Round(const TensorDecl& tensor) {
    const int whole = out_.TensorBuffer(stage().tensor);
    return ForTiles(
        out_, Affine(), tensor.Elements(), tiling_.lanes * 4, LoopKind::kSerial,
        [&](const Affine& start, int64_t extent) {
          return ForVectors(
              out_, VectorTile::Of(extent, tiling_.lanes),
              [&](const VectorPosition& at) {
                const Affine element = start + at.position;
                return loop::Store(
                    whole, element,
                    loop::Cast(loop::Load(out_.buffer(target_.buffer),
                                          target_.buffer, element),
                               tensor.dtype));
              });
        });
  }

  const FoldShape& shape_;
  const FoldTiling& tiling_;
  LoopBuilder& out_;
  StageTarget target_;
  bool parallel_left_ = false;
  std::map<int, IndexRange> ranges_;
};

}  // namespace

std::optional<FoldShape> MatchFold(const Workload& w, int stage) {
  const Stage& s = w.stages[stage];
  if (s.reduction == Reduction::kNone || MatchContraction(w, stage)) {
    return std::nullopt;
  }
  Affine form;
  int64_t most = 0;
  for (const Expr* access : Accesses(s.value)) {
    const Affine flat = FlatForm(w, *access);
    const int64_t touched = Touched(w, s, flat);
    if (touched > most) form = flat;
    most = std::max(most, touched);
  }
  FoldShape shape{.stage = stage};
  for (int index : s.reduce_indices) {
    if (shape.folded < 0 || form.Coeff(index) > form.Coeff(shape.folded)) {
      shape.folded = index;
    }
    if (form.Coeff(index) == 1) shape.vector = index;
  }
  // Lanes would run over the folded index itself.
  if (shape.folded < 0 || form.Coeff(shape.folded) <= 1) return std::nullopt;
  shape.vector_reduced = shape.vector >= 0;
  for (int index : s.indices) {
    const bool slower = form.Coeff(index) > form.Coeff(shape.folded);
    (slower ? shape.outside : shape.inside).push_back(index);
    if (form.Coeff(index) != 1) continue;
    shape.vector = index;
    shape.vector_reduced = false;
  }
  if (most == 0 || shape.inside.empty() || shape.vector < 0) {
    return std::nullopt;
  }
  // Lanes run over the contiguous index of the result, or over a reduced one.
  if (!shape.vector_reduced && shape.vector != s.indices.back()) {
    return std::nullopt;
  }
  return shape;
}

void EmitFold(const FoldShape& shape, const FoldTiling& tiling,
              LoopBuilder& out) {
  FoldEmitter(shape, tiling, out).Emit();
}

}  // namespace regatta
