#include "compiler/space/rules/rows_emitter.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"

namespace regatta {
namespace {

// The stage of the run whose result `expr` reads, when that is one number a
// row; null otherwise.
const Stage* RowValue(const Workload& w, const RowsShape& shape,
                      const Expr& expr) {
  if (expr.kind != Expr::Kind::kAccess || expr.dtype != DType::kF32) {
    return nullptr;
  }
  for (int i = 0; i < shape.count; ++i) {
    const Stage& stage = w.stages[shape.first + i];
    if (stage.tensor == expr.tensor &&
        stage.indices.size() == static_cast<size_t>(shape.row_dims)) {
      return &stage;
    }
  }
  return nullptr;
}

bool IsRowDivision(const Workload& w, const RowsShape& shape,
                   const Expr& expr) {
  return expr.kind == Expr::Kind::kBinary && expr.binary == BinaryOp::kDiv &&
         RowValue(w, shape, *expr.operands[1]) != nullptr;
}

bool HasRowDivision(const Workload& w, const RowsShape& shape,
                    const Expr& expr) {
  return IsRowDivision(w, shape, expr) ||
         std::any_of(expr.operands.begin(), expr.operands.end(),
                     [&](const ExprPtr& operand) {
                       return HasRowDivision(w, shape, *operand);
                     });
}

}  // namespace

bool DividesByRowValue(const Workload& w, const RowsShape& shape) {
  for (int i = 0; i < shape.count; ++i) {
    const Stage& stage = w.stages[shape.first + i];
    // Where a stage has no work within a row there is nothing to save.
    const bool inner =
        stage.indices.size() > static_cast<size_t>(shape.row_dims);
    if (inner && HasRowDivision(w, shape, *stage.value)) return true;
  }
  return false;
}

void RowsEmitter::Emit() {
  out_.AddKernel(absl::StrCat("rows_", w_.tensors[StageAt(0).tensor].name),
                 Outer(0));
}

int64_t RowsEmitter::Inner(const Stage& stage) const {
  const std::vector<int64_t>& shape = w_.tensors[stage.tensor].shape;
  int64_t elements = 1;
  for (size_t d = shape_.row_dims; d < shape.size(); ++d) elements *= shape[d];
  return elements;
}

loop::StmtPtr RowsEmitter::Outer(int dim) {
  const loop::LoopKind kind = tiling_.parallel && dim == 0
                                  ? loop::LoopKind::kParallel
                                  : loop::LoopKind::kSerial;
  if (dim + 1 < shape_.row_dims) {
    return MakeLoop(out_, RowExtent(dim), kind, [&](const Affine& var) {
      row_.resize(dim);
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

int RowsEmitter::AddScratch(const std::string& prefix, int tensor,
                            int64_t elements) {
  return out_.AddBuffer({.name = absl::StrCat(prefix, w_.tensors[tensor].name),
                         .dtype = w_.tensors[tensor].dtype,
                         .elements = elements,
                         .scope = loop::Scope::kWorkspace,
                         .per_thread = tiling_.parallel});
}

loop::StmtPtr RowsEmitter::Stages(int64_t rows) {
  scratch_.clear();
  reciprocal_.clear();
  std::vector<loop::StmtPtr> body;
  for (int i = 0; i < shape_.count; ++i) {
    const Stage& stage = StageAt(i);
    if (tiling_.recompute && shape_.recomputable[i]) continue;
    if (shape_.local[i]) {
      scratch_[stage.tensor] =
          AddScratch("row_", stage.tensor, rows * Inner(stage));
    }
    body.push_back(OneStage(i, rows));
    if (tiling_.reciprocal && DividedByLater(i)) {
      body.push_back(Reciprocals(stage, rows));
    }
  }
  return loop::Block(std::move(body));
}

// Whether a later stage of the run divides by the result of stage `i`.
bool RowsEmitter::DividedByLater(int i) const {
  const int tensor = StageAt(i).tensor;
  const std::function<bool(const Expr&)> divides = [&](const Expr& expr) {
    return (IsRowDivision(w_, shape_, expr) &&
            expr.operands[1]->tensor == tensor) ||
           std::any_of(expr.operands.begin(), expr.operands.end(),
                       [&](const ExprPtr& e) { return divides(*e); });
  };
  for (int later = i + 1; later < shape_.count; ++later) {
    if (divides(*StageAt(later).value)) return true;
  }
  return false;
}

Affine RowsEmitter::ScratchOffset(const Stage& stage,
                                  const std::vector<Affine>& subscripts) const {
  const std::vector<int64_t>& shape = w_.tensors[stage.tensor].shape;
  Affine offset = subscripts[shape_.row_dims - 1] - row_.back();
  for (size_t d = shape_.row_dims; d < shape.size(); ++d) {
    offset = offset * shape[d] + subscripts[d];
  }
  return offset;
}

StageTarget RowsEmitter::TargetOf(const Stage& stage) const {
  const auto it = scratch_.find(stage.tensor);
  if (it == scratch_.end()) {
    StageTarget target = TensorTarget(out_, stage);
    target.streaming = tiling_.streaming;
    return target;
  }
  return {it->second,
          [this, &stage](const Bind& bind) {
            std::vector<Affine> subscripts;
            for (int index : stage.indices) subscripts.push_back(bind(index));
            return ScratchOffset(stage, subscripts);
          },
          Reduction::kNone};
}

loop::StmtPtr RowsEmitter::OneStage(int i, int64_t rows) {
  const Stage stage =
      tiling_.reciprocal ? WithoutDivisions(StageAt(i)) : StageAt(i);
  std::map<int, IndexRange> ranges;
  for (int d = 0; d < shape_.row_dims; ++d) {
    const bool last = d + 1 == shape_.row_dims;
    ranges[stage.indices[d]] = {row_[d], last ? rows : 1};
  }
  return StageLoops(out_, stage, TilingOf(stage, rows), std::move(ranges),
                    TargetOf(stage),
                    [this](const Expr& access, const Bind& bind) {
                      return Read(access, bind);
                    })
      .Emit();
}

// 1 / value of every row, once, for the divisions that follow.
loop::StmtPtr RowsEmitter::Reciprocals(const Stage& stage, int64_t rows) {
  const int buffer = AddScratch("inverse_", stage.tensor, rows);
  reciprocal_[stage.tensor] = buffer;
  return MakeLoop(
      out_, rows, loop::LoopKind::kUnrolled, [&](const Affine& row) {
        const Bind bind = [&](int index) {
          for (int d = 0; d < shape_.row_dims; ++d) {
            if (stage.indices[d] != index) continue;
            return d + 1 == shape_.row_dims ? row_[d] + row : row_[d];
          }
          return Affine();
        };
        const StageTarget target = TargetOf(stage);
        return loop::Store(
            buffer, row,
            loop::Binary(BinaryOp::kDiv, loop::Const(1),
                         loop::Load(out_.buffer(target.buffer), target.buffer,
                                    target.offset(bind))));
      });
}

Stage RowsEmitter::WithoutDivisions(const Stage& stage) {
  const std::function<ExprPtr(const ExprPtr&)> rewrite =
      [&](const ExprPtr& expr) -> ExprPtr {
    auto copy = std::make_shared<Expr>(*expr);
    for (ExprPtr& operand : copy->operands) operand = rewrite(operand);
    if (IsRowDivision(w_, shape_, *copy) &&
        reciprocal_.count(copy->operands[1]->tensor) > 0) {
      copy->binary = BinaryOp::kMul;
      reciprocal_reads_.insert(copy->operands[1].get());
    }
    return copy;
  };
  reciprocal_reads_.clear();
  Stage result = stage;
  result.value = rewrite(stage.value);
  return result;
}

StageTiling RowsEmitter::TilingOf(const Stage& stage, int64_t rows) const {
  StageTiling t{.row_index = stage.indices[shape_.row_dims - 1], .rows = rows};
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
  t.vectors = std::max<int64_t>(1, std::min(tiling_.vectors, extent / t.lanes));
  t.unroll = tiling_.unroll;
  return t;
}

std::optional<loop::ValuePtr> RowsEmitter::Read(const Expr& access,
                                                const Bind& bind) {
  for (int i = 0; i < shape_.count; ++i) {
    const Stage& stage = StageAt(i);
    if (stage.tensor != access.tensor) continue;
    std::vector<Affine> subscripts;
    for (const Affine& form : access.subscripts) {
      subscripts.push_back(BindForm(form, bind));
    }
    if (reciprocal_reads_.count(&access) > 0) {
      const int id = reciprocal_.at(stage.tensor);
      return loop::Load(out_.buffer(id), id, ScratchOffset(stage, subscripts));
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

}  // namespace regatta
