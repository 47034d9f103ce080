#include "compiler/reference.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/lower/loop_builder.h"

namespace regatta {
namespace {

DType Wide(DType type) { return IsFloat(type) ? DType::kF64 : type; }

ExprPtr CastTo(ExprPtr expr, DType type) {
  if (expr->dtype == type) return expr;
  auto cast = std::make_shared<Expr>();
  cast->kind = Expr::Kind::kCast;
  cast->dtype = type;
  cast->operands = {std::move(expr)};
  return cast;
}

ExprPtr Widen(const ExprPtr& expr, const Workload& workload) {
  auto wide = std::make_shared<Expr>(*expr);
  for (ExprPtr& operand : wide->operands) operand = Widen(operand, workload);
  const bool input = expr->kind == Expr::Kind::kAccess &&
                     workload.tensors[expr->tensor].role == TensorRole::kInput;
  // What is read or rounded in its own type widens after that.
  if (input || expr->kind == Expr::Kind::kCast) {
    return CastTo(std::move(wide), Wide(expr->dtype));
  }
  wide->dtype = Wide(expr->dtype);
  return wide;
}

// Elements of the last index that are computed together.
int64_t TileSize(const Target& target) {
  constexpr int64_t kVectors = 8;
  return kVectors * target.Lanes(DTypeBytes(DType::kF64));
}

// The loops of one stage.
class StageEmitter {
 public:
  StageEmitter(LoopBuilder& builder, const Stage& stage, int64_t tile)
      : builder_(builder),
        workload_(builder.workload()),
        stage_(stage),
        tile_(tile) {}

  loop::StmtPtr Emit() {
    std::vector<int> outer = stage_.indices;
    int inner = -1;
    if (!outer.empty()) {
      inner = outer.back();
      outer.pop_back();
    }
    std::vector<std::pair<int, int64_t>> loops;
    for (const int id : outer) loops.push_back(Bind(id));
    loop::StmtPtr body =
        inner < 0 ? EmitTile(-1, Affine(), 1) : EmitInner(inner);
    return Nest(loops, std::move(body));
  }

 private:
  std::pair<int, int64_t> Bind(int id) {
    const int var = builder_.NewVar();
    bound_[id] = Affine::Var(var);
    return {var, workload_.indices[id].extent};
  }

  static loop::StmtPtr Nest(const std::vector<std::pair<int, int64_t>>& loops,
                            loop::StmtPtr body) {
    for (auto it = loops.rbegin(); it != loops.rend(); ++it) {
      body = loop::For(it->first, it->second, loop::LoopKind::kSerial,
                       std::move(body));
    }
    return body;
  }

  // Whole tiles of the last index, then what is left.
  loop::StmtPtr EmitInner(int index) {
    const int64_t extent = workload_.indices[index].extent;
    const int64_t whole = extent / tile_;
    std::vector<loop::StmtPtr> parts;
    if (whole > 0) {
      const int var = builder_.NewVar();
      parts.push_back(
          loop::For(var, whole, loop::LoopKind::kSerial,
                    EmitTile(index, Affine::Var(var, tile_), tile_)));
    }
    if (extent % tile_ > 0) {
      parts.push_back(EmitTile(index, Affine(whole * tile_), extent % tile_));
    }
    return loop::Block(std::move(parts));
  }

  // `body` for `width` values of `index` from `start` on; `body` gets the
  // lane. Width 1 is no loop.
  template <typename Body>
  loop::StmtPtr OverLanes(int index, const Affine& start, int64_t width,
                          const Body& body) {
    if (index < 0) return body(Affine());
    if (width == 1) {
      bound_[index] = start;
      return body(Affine());
    }
    const int var = builder_.NewVar();
    bound_[index] = start + Affine::Var(var);
    return loop::For(var, width, loop::LoopKind::kVector,
                     body(Affine::Var(var)));
  }

  loop::ValuePtr Value() {
    return builder_.Translate(stage_.value,
                              [this](int id) { return bound_.at(id); });
  }

  Affine OutputOffset() const {
    std::vector<Affine> subscripts;
    for (const int id : stage_.indices) subscripts.push_back(Affine::Var(id));
    return builder_.TensorOffset(stage_.tensor, subscripts,
                                 [this](int id) { return bound_.at(id); });
  }

  loop::StmtPtr StoreResult(loop::ValuePtr value) {
    const int out = builder_.TensorBuffer(stage_.tensor);
    return loop::Store(
        out, OutputOffset(),
        loop::Cast(std::move(value), builder_.buffer(out).dtype));
  }

  loop::StmtPtr EmitTile(int index, const Affine& start, int64_t width) {
    if (stage_.reduction == Reduction::kNone) {
      return OverLanes(index, start, width,
                       [&](const Affine&) { return StoreResult(Value()); });
    }
    const DType type = Wide(stage_.accumulator);
    loop::Buffer registers;
    registers.name = absl::StrCat("acc", builder_.NewVar());
    registers.dtype = type;
    registers.elements = width;
    registers.scope = loop::Scope::kRegister;
    const int acc = builder_.AddBuffer(registers);
    std::vector<loop::StmtPtr> steps;
    steps.push_back(OverLanes(index, start, width, [&](const Affine& lane) {
      return loop::Store(
          acc, lane, loop::Const(loop::Identity(stage_.reduction, type), type));
    }));
    std::vector<std::pair<int, int64_t>> loops;
    for (const int id : stage_.reduce_indices) loops.push_back(Bind(id));
    steps.push_back(
        Nest(loops, OverLanes(index, start, width, [&](const Affine& lane) {
               return loop::Store(acc, lane, loop::Cast(Value(), type),
                                  stage_.reduction);
             })));
    steps.push_back(OverLanes(index, start, width, [&](const Affine& lane) {
      return StoreResult(loop::Load(builder_.buffer(acc), acc, lane));
    }));
    return loop::Block(std::move(steps));
  }

  LoopBuilder& builder_;
  const Workload& workload_;
  const Stage& stage_;
  const int64_t tile_;
  std::map<int, Affine> bound_;  // per index of the workload
};

}  // namespace

Workload WidenWorkload(const Workload& workload) {
  Workload widened = workload;
  for (TensorDecl& tensor : widened.tensors) {
    if (tensor.role == TensorRole::kInternal) tensor.dtype = Wide(tensor.dtype);
  }
  for (Stage& stage : widened.stages) {
    stage.accumulator = Wide(stage.accumulator);
    stage.value = Widen(stage.value, workload);
  }
  return widened;
}

loop::Program EmitReference(const Workload& widened, const Target& target) {
  LoopBuilder builder(widened, 1);
  for (size_t i = 0; i < widened.stages.size(); ++i) {
    StageEmitter stage(builder, widened.stages[i], TileSize(target));
    builder.AddKernel(absl::StrCat("stage", i), stage.Emit());
  }
  return builder.Finish();
}

}  // namespace regatta
