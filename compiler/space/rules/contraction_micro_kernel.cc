// The innermost part of the contraction emitter: accumulators in registers, one
// step of the summed loops, and what happens to the sums.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/contraction_emitter.h"

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
    return MakeLoop(out_, rows, LoopKind::kUnrolled, [&](const Affine& row) {
      return FusedStages(acc, row, tile);
    });
  }
  return ForRowsAndVectors(
      out_, rows, tile, [&](const Affine& row, const VectorPosition& at) {
        return loop::Store(partial_, ResultOffset(BindTile(row, at.position)),
                           acc.Load(row, at));
      });
}

// Whether anything outside the fused stages sees the result of `stage`.
bool ContractionEmitter::StoresStage(int stage) const {
  const Workload& w = out_.workload();
  const int tensor = w.stages[stage].tensor;
  if (w.tensors[tensor].role == TensorRole::kOutput || stage_count_ == 1) {
    return true;
  }
  for (size_t later = shape_.stage + stage_count_; later < w.stages.size();
       ++later) {
    for (const Expr* access : Accesses(w.stages[later].value)) {
      if (access->tensor == tensor) return true;
    }
  }
  return false;
}

// The sums of one row become elements of the result, and the fused stages
// follow, each stage's values in registers for the next ones.
StmtPtr ContractionEmitter::FusedStages(const RegisterTile& acc,
                                        const Affine& row,
                                        const VectorTile& tile) {
  const Workload& w = out_.workload();
  std::map<int, RegisterTile> values;  // by tensor
  std::vector<StmtPtr> body;
  for (int i = 0; i < stage_count_; ++i) {
    const Stage& current = w.stages[shape_.stage + i];
    const DType type = w.tensors[current.tensor].dtype;
    const bool stores = StoresStage(shape_.stage + i);
    // Without a later fused stage the value goes straight to memory.
    const bool keeps = i + 1 < stage_count_;
    if (keeps) {
      values.try_emplace(current.tensor, out_, absl::StrCat("fused", i), type,
                         1, tile);
    }
    body.push_back(ForVectors(out_, tile, [&](const VectorPosition& at) {
      const Bind bind = BindTile(row, at.position);
      // Fused stages have the same indices under other ids.
      const Bind bind_current = [&](int index) {
        for (size_t d = 0; d < current.indices.size(); ++d) {
          if (current.indices[d] == index) return bind(stage().indices[d]);
        }
        return bind(index);
      };
      const auto hook = [&](const Expr& access) -> std::optional<ValuePtr> {
        const auto it = values.find(access.tensor);
        if (it == values.end()) return std::nullopt;
        return it->second.Load(Affine(), at);
      };
      ValuePtr value = i == 0
                           ? acc.Load(row, at)
                           : out_.Translate(current.value, bind_current, hook);
      value = loop::Cast(std::move(value), type);
      if (!keeps) {
        return loop::Store(out_.TensorBuffer(current.tensor),
                           ResultOffset(bind), std::move(value));
      }
      return values.at(current.tensor).Store(Affine(), at, std::move(value));
    }));
    if (!keeps || !stores) continue;
    body.push_back(ForVectors(out_, tile, [&](const VectorPosition& at) {
      return loop::Store(out_.TensorBuffer(current.tensor),
                         ResultOffset(BindTile(row, at.position)),
                         values.at(current.tensor).Load(Affine(), at));
    }));
  }
  return loop::Block(std::move(body));
}

}  // namespace regatta
