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
  if (tiling_.Grouped()) return ProductKernel(rows, tile);
  const RegisterTile acc(out_, "acc", stage().accumulator, rows, tile);
  StmtPtr start = StartValues(acc, rows, tile);
  StmtPtr sum = KLoops(0, rows, [&] { return Step(acc, rows, tile); });
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

StmtPtr ContractionEmitter::KLoops(size_t depth, int64_t rows,
                                   const std::function<StmtPtr()>& body) {
  if (depth == tiling_.k_order.size()) return body();
  const int index = tiling_.k_order[depth];
  const IndexRange range =
      index == tiling_.split_k ? k_range_ : IndexRange{Affine(), Extent(index)};
  const bool innermost = depth + 1 == tiling_.k_order.size();
  const int64_t step = index == tiling_.group ? tiling_.products.depth : 1;
  const int64_t steps = CeilDiv(range.extent, step);
  if (innermost && tiling_.a_lanes > 1) {
    return LaneLoops(index, range.start, steps, rows, body);
  }
  return MakeLoop(
      out_, steps, LoopKind::kSerial,
      [&](const Affine& var) {
        bound_[index] = range.start + var * step;
        return KLoops(depth + 1, rows, body);
      },
      innermost ? tiling_.unroll : 1);
}

// As many steps at a time as a vector of A has; the rest one by one.
StmtPtr ContractionEmitter::LaneLoops(int index, const Affine& start,
                                      int64_t steps, int64_t rows,
                                      const std::function<StmtPtr()>& body) {
  const int64_t depth = tiling_.products.depth;
  const int64_t together = tiling_.a_lanes / depth;
  std::vector<StmtPtr> parts;
  if (steps >= together) {
    const DType type = out_.workload().tensors[shape_.a->tensor].dtype;
    const int lanes = out_.AddBuffer({.name = "a",
                                      .dtype = type,
                                      .elements = rows * tiling_.a_lanes,
                                      .scope = loop::Scope::kRegister});
    parts.push_back(MakeLoop(
        out_, steps / together, LoopKind::kSerial, [&](const Affine& var) {
          const Affine first = start + var * tiling_.a_lanes;
          bound_[index] = first;
          StmtPtr load =
              MakeLoop(out_, rows, LoopKind::kUnrolled, [&](const Affine& row) {
                const ValuePtr a = LoadOperand(a_, BindTile(row, Affine()));
                return MakeLoop(out_, tiling_.a_lanes, LoopKind::kVector,
                                [&](const Affine& lane) {
                                  return loop::Store(
                                      lanes, row * tiling_.a_lanes + lane,
                                      loop::Load(out_.buffer(a->buffer),
                                                 a->buffer, a->offset + lane));
                                });
              });
          lane_a_ = lanes;
          StmtPtr multiply = MakeLoop(out_, together, LoopKind::kUnrolled,
                                      [&](const Affine& at) {
                                        lane_ = at * depth;
                                        bound_[index] = first + at * depth;
                                        return body();
                                      });
          lane_a_ = -1;
          return loop::Block({std::move(load), std::move(multiply)});
        }));
  }
  if (steps % together > 0) {
    const Affine rest = start + steps / together * tiling_.a_lanes;
    parts.push_back(MakeLoop(out_, steps % together, LoopKind::kSerial,
                             [&](const Affine& var) {
                               bound_[index] = rest + var * depth;
                               return body();
                             }));
  }
  return loop::Block(std::move(parts));
}

ValuePtr ContractionEmitter::LoadA(const Affine& row) const {
  if (lane_a_ < 0) return LoadOperand(a_, BindTile(row, Affine()));
  return loop::Load(out_.buffer(lane_a_), lane_a_,
                    row * tiling_.a_lanes + lane_);
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
  const int a = shape_.vector_in_a || lane_a_ >= 0
                    ? -1
                    : out_.AddBuffer({.name = "a",
                                      .dtype = a_type,
                                      .elements = rows,
                                      .scope = loop::Scope::kRegister});
  StmtPtr multiply =
      MakeLoop(out_, rows, LoopKind::kUnrolled, [&](const Affine& row) {
        std::vector<StmtPtr> body;
        if (a >= 0) {
          body.push_back(loop::Store(a, row, LoadA(row)));
        }
        body.push_back(ForVectors(out_, tile, [&](const VectorPosition& at) {
          const Bind bind = BindTile(row, at.position);
          const auto hook = [&](const Expr& access) -> std::optional<ValuePtr> {
            if (&access == shape_.b) return b.Load(Affine(), at);
            if (a >= 0) return loop::Load(out_.buffer(a), a, row);
            if (lane_a_ >= 0) return LoadA(row);
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
