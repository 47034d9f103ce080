// The innermost part of the contraction emitter: accumulators in registers, one
// step of the summed loops, and what happens to the sums.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/contraction_emitter.h"
#include "compiler/space/rules/fused_stages.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;
using loop::ValuePtr;

ContractionEmitter::Bind ContractionEmitter::BindNow() const {
  return [bound = bound_](int index) {
    const auto it = bound.find(index);
    CHECK(it != bound.end()) << "index " << index << " is not bound";
    return it->second;
  };
}

// Index values at row `row` and element `position` of the current tile.
ContractionEmitter::Bind ContractionEmitter::BindTile(
    const Affine& row, const Affine& position) const {
  return [this, now = BindNow(), row, position](int index) {
    if (index == tiling_.row_index) return now(index) + row;
    if (index == shape_.vector) return now(index) + position;
    return now(index);
  };
}

ValuePtr ContractionEmitter::LoadOperand(const Operand& operand,
                                         const Bind& bind) const {
  if (operand.buffer < 0) return out_.LoadTensor(*operand.access, bind);
  return loop::Load(out_.buffer(operand.buffer), operand.buffer,
                    operand.offset(bind));
}

Affine ContractionEmitter::ResultOffset(const Bind& bind) const {
  std::vector<Affine> subscripts;
  for (int index : stage().indices) subscripts.push_back(Affine::Var(index));
  return out_.TensorOffset(stage().tensor, subscripts, bind);
}

StmtPtr ContractionEmitter::MicroKernel(const Affine& row, int64_t rows,
                                        const Affine& element,
                                        const VectorTile& tile) {
  if (tiling_.row_index >= 0) bound_[tiling_.row_index] = row;
  bound_[shape_.vector] = element;
  const RegisterTile acc(out_, "acc", stage().accumulator, rows, tile);
  StmtPtr start = StartValues(acc, rows, tile);
  StmtPtr sum = KLoops(0, [&] { return Step(acc, rows, tile); });
  StmtPtr store = StoreResults(acc, rows, tile);
  return loop::Block({std::move(start), std::move(sum), std::move(store)});
}

StmtPtr ContractionEmitter::StartValues(const RegisterTile& acc, int64_t rows,
                                        const VectorTile& tile) {
  return ForRowsAndVectors(
      out_, rows, tile, [&](const Affine& row, const VectorPosition& at) {
        ValuePtr value =
            k_part_.first
                ? loop::Const(0, stage().accumulator)
                : loop::Load(out_.buffer(partial_), partial_,
                             ResultOffset(BindTile(row, at.position)));
        return acc.Store(row, at, std::move(value));
      });
}

StmtPtr ContractionEmitter::KLoops(size_t depth,
                                   const std::function<StmtPtr()>& body) {
  if (depth == tiling_.k_order.size()) return body();
  const int index = tiling_.k_order[depth];
  const IndexRange range =
      index == tiling_.split_k ? k_range_ : IndexRange{Affine(), Extent(index)};
  const bool innermost = depth + 1 == tiling_.k_order.size();
  return MakeLoop(
      out_, range.extent, LoopKind::kSerial,
      [&](const Affine& var) {
        bound_[index] = range.start + var;
        return KLoops(depth + 1, body);
      },
      innermost ? tiling_.unroll : 1);
}

// Loads each element of A and B once and multiplies all pairs.
StmtPtr ContractionEmitter::Step(const RegisterTile& acc, int64_t rows,
                                 const VectorTile& tile) {
  const Workload& w = out_.workload();
  const DType a_type = w.tensors[shape_.a->tensor].dtype;
  const RegisterTile b(out_, "b", w.tensors[shape_.b->tensor].dtype, 1, tile);
  StmtPtr load_b = ForVectors(out_, tile, [&](const VectorPosition& at) {
    return b.Store(Affine(), at,
                   LoadOperand(b_, BindTile(Affine(), at.position)));
  });
  const int a = shape_.vector_in_a
                    ? -1
                    : out_.AddBuffer({.name = "a",
                                      .dtype = a_type,
                                      .elements = rows,
                                      .scope = loop::Scope::kRegister});
  StmtPtr multiply =
      MakeLoop(out_, rows, LoopKind::kUnrolled, [&](const Affine& row) {
        std::vector<StmtPtr> body;
        if (a >= 0) {
          body.push_back(
              loop::Store(a, row, LoadOperand(a_, BindTile(row, Affine()))));
        }
        body.push_back(ForVectors(out_, tile, [&](const VectorPosition& at) {
          const Bind bind = BindTile(row, at.position);
          const auto hook = [&](const Expr& access) -> std::optional<ValuePtr> {
            if (&access == shape_.b) return b.Load(Affine(), at);
            if (a >= 0) return loop::Load(out_.buffer(a), a, row);
            return LoadOperand(a_, bind);
          };
          return acc.Store(row, at, out_.Translate(stage().value, bind, hook),
                           Reduction::kSum);
        }));
        return loop::Block(std::move(body));
      });
  return loop::Block({std::move(load_b), std::move(multiply)});
}

StmtPtr ContractionEmitter::StoreResults(const RegisterTile& acc, int64_t rows,
                                         const VectorTile& tile) {
  if (k_part_.last) {
    const FusedStages fused(out_, shape_.stage, stage_count_);
    return MakeLoop(out_, rows, LoopKind::kUnrolled, [&](const Affine& row) {
      return fused.Store(acc, row, tile, [&](const Affine& position) {
        return BindTile(row, position);
      });
    });
  }
  return ForRowsAndVectors(
      out_, rows, tile, [&](const Affine& row, const VectorPosition& at) {
        return loop::Store(partial_, ResultOffset(BindTile(row, at.position)),
                           acc.Load(row, at));
      });
}

}  // namespace regatta
