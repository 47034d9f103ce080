#include "compiler/space/rules/stage_loops.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;
using loop::ValuePtr;

StageTarget TensorTarget(const LoopBuilder& out, const Stage& stage) {
  std::vector<Affine> subscripts;
  for (int index : stage.indices) subscripts.push_back(Affine::Var(index));
  return {out.TensorBuffer(stage.tensor),
          [&out, tensor = stage.tensor, subscripts = std::move(subscripts)](
              const std::function<Affine(int)>& bind) {
            return out.TensorOffset(tensor, subscripts, bind);
          },
          Reduction::kNone};
}

StageLoops::StageLoops(LoopBuilder& out, const Stage& stage, StageTiling tiling,
                       std::map<int, IndexRange> ranges, StageTarget target,
                       BoundAccessHook hook)
    : out_(out),
      stage_(stage),
      tiling_(tiling),
      ranges_(std::move(ranges)),
      target_(std::move(target)),
      hook_(std::move(hook)) {
  for (int index : stage.indices) {
    if (index != tiling_.vector_index && index != tiling_.row_index) {
      outer_.push_back(index);
    }
  }
  for (int index : stage.reduce_indices) {
    if (index != tiling_.vector_index) reduced_.push_back(index);
  }
  if (tiling_.reversed) std::reverse(outer_.begin(), outer_.end());
}

IndexRange StageLoops::RangeOf(int index) const {
  const auto it = ranges_.find(index);
  if (it != ranges_.end()) return it->second;
  return {Affine(), out_.workload().indices[index].extent};
}

// Parallel for the first loop that has iterations to share.
LoopKind StageLoops::NextKind(int64_t trips) {
  if (!parallel_left_ || trips < 2) return LoopKind::kSerial;
  parallel_left_ = false;
  return LoopKind::kParallel;
}

bool StageLoops::VectorisesOutput() const {
  return std::count(stage_.indices.begin(), stage_.indices.end(),
                    tiling_.vector_index) > 0;
}

StmtPtr StageLoops::Emit() {
  parallel_left_ = tiling_.parallel;
  return OuterLoops(0);
}

StmtPtr StageLoops::OuterLoops(size_t depth) {
  if (depth == outer_.size()) return RowTiles();
  const IndexRange range = RangeOf(outer_[depth]);
  return MakeLoop(out_, range.extent, NextKind(range.extent),
                  [&](const Affine& var) {
                    bound_[outer_[depth]] = range.start + var;
                    return OuterLoops(depth + 1);
                  });
}

StmtPtr StageLoops::RowTiles() {
  if (tiling_.row_index < 0) return VectorTiles();
  const IndexRange range = RangeOf(tiling_.row_index);
  return ForTiles(out_, range.start, range.extent, tiling_.rows,
                  NextKind(range.extent / tiling_.rows),
                  [&](const Affine& start, int64_t extent) {
                    bound_[tiling_.row_index] = start;
                    rows_ = extent;
                    return VectorTiles();
                  });
}

StmtPtr StageLoops::VectorTiles() {
  if (tiling_.vector_index >= 0 && !VectorisesOutput()) {
    return LaneReductionBlock();
  }
  const auto block = [&](const VectorTile& tile) {
    return stage_.reduction == Reduction::kNone ? ElementwiseBlock(tile)
                                                : ReductionBlock(tile);
  };
  if (tiling_.vector_index < 0) return block(VectorTile());
  const IndexRange range = RangeOf(tiling_.vector_index);
  const int64_t width = tiling_.lanes * tiling_.vectors;
  return ForTiles(out_, range.start, range.extent, width,
                  NextKind(range.extent / width),
                  [&](const Affine& start, int64_t extent) {
                    bound_[tiling_.vector_index] = start;
                    return block(VectorTile::Of(extent, tiling_.lanes));
                  });
}

// Index values at row `row` and element `position` of the current block.
StageLoops::Bind StageLoops::BindAt(const Affine& row,
                                    const Affine& position) const {
  std::map<int, Affine> bound = bound_;
  if (tiling_.row_index >= 0) {
    bound[tiling_.row_index] = bound[tiling_.row_index] + row;
  }
  if (tiling_.vector_index >= 0) {
    bound[tiling_.vector_index] = bound[tiling_.vector_index] + position;
  }
  return [bound = std::move(bound)](int index) {
    const auto it = bound.find(index);
    CHECK(it != bound.end()) << "index " << index << " is not bound";
    return it->second;
  };
}

ValuePtr StageLoops::ValueAt(const Bind& bind) const {
  if (!hook_) return out_.Translate(stage_.value, bind);
  return out_.Translate(stage_.value, bind, [&](const Expr& access) {
    return hook_(access, bind);
  });
}

StmtPtr StageLoops::StoreResult(const Bind& bind, ValuePtr value,
                                bool whole) const {
  return loop::Store(
      target_.buffer, target_.offset(bind),
      loop::Cast(std::move(value), out_.buffer(target_.buffer).dtype),
      target_.accumulate, target_.streaming && whole);
}

StmtPtr StageLoops::ElementwiseBlock(const VectorTile& tile) {
  return ForRowsAndVectors(
      out_, rows_, tile, [&](const Affine& row, const VectorPosition& at) {
        const Bind bind = BindAt(row, at.position);
        return StoreResult(bind, ValueAt(bind), at.piece == 0);
      });
}

StmtPtr StageLoops::ReductionLoops(size_t depth,
                                   const std::function<StmtPtr()>& body) {
  if (depth == reduced_.size()) return body();
  const IndexRange range = RangeOf(reduced_[depth]);
  const bool innermost = depth + 1 == reduced_.size() &&
                         (tiling_.vector_index < 0 || VectorisesOutput());
  return MakeLoop(
      out_, range.extent, LoopKind::kSerial,
      [&](const Affine& var) {
        bound_[reduced_[depth]] = range.start + var;
        return ReductionLoops(depth + 1, body);
      },
      innermost ? tiling_.unroll : 1);
}

StmtPtr StageLoops::ReductionBlock(const VectorTile& tile) {
  const DType type = stage_.accumulator;
  const RegisterTile acc(out_, "acc", type, rows_, tile);
  StmtPtr init = ForRowsAndVectors(
      out_, rows_, tile, [&](const Affine& row, const VectorPosition& at) {
        return acc.Store(
            row, at, loop::Const(loop::Identity(stage_.reduction, type), type));
      });
  StmtPtr reduce = ReductionLoops(0, [&] {
    return ForRowsAndVectors(
        out_, rows_, tile, [&](const Affine& row, const VectorPosition& at) {
          return acc.Store(row, at, ValueAt(BindAt(row, at.position)),
                           stage_.reduction);
        });
  });
  StmtPtr store = ForRowsAndVectors(
      out_, rows_, tile, [&](const Affine& row, const VectorPosition& at) {
        return StoreResult(BindAt(row, at.position), acc.Load(row, at),
                           at.piece == 0);
      });
  return loop::Block({std::move(init), std::move(reduce), std::move(store)});
}

// Whole vectors add up in lanes of their own; what is left of a row is reduced
// straight into the row's scalar.
StmtPtr StageLoops::LaneReductionBlock() {
  const DType type = stage_.accumulator;
  const int64_t extent = RangeOf(tiling_.vector_index).extent;
  const int64_t vectors = std::min(tiling_.vectors, extent / tiling_.lanes);
  const VectorTile tile{tiling_.lanes, vectors, 0};
  const int scalars = out_.AddBuffer({.name = "total",
                                      .dtype = type,
                                      .elements = rows_,
                                      .scope = loop::Scope::kRegister});
  const RegisterTile lanes(out_, "lanes", type, rows_, tile);
  const auto identity = [&] {
    return loop::Const(loop::Identity(stage_.reduction, type), type);
  };
  const auto for_rows = [&](const std::function<StmtPtr(const Affine&)>& body) {
    return MakeLoop(out_, rows_, LoopKind::kUnrolled, body);
  };
  std::vector<StmtPtr> body;
  body.push_back(for_rows([&](const Affine& row) {
    return loop::Store(scalars, row, identity());
  }));
  if (vectors > 0) {
    body.push_back(ForRowsAndVectors(
        out_, rows_, tile, [&](const Affine& row, const VectorPosition& at) {
          return lanes.Store(row, at, identity());
        }));
  }
  // The tail comes last in each pass over the lanes, inside the other loops.
  body.push_back(
      ReductionLoops(0, [&] { return AccumulateLanes(lanes, scalars); }));
  if (vectors > 0) body.push_back(CombineLanes(lanes, scalars));
  body.push_back(for_rows([&](const Affine& row) {
    return StoreResult(BindAt(row, Affine()),
                       loop::Load(out_.buffer(scalars), scalars, row), false);
  }));
  return loop::Block(std::move(body));
}

StmtPtr StageLoops::AccumulateLanes(const RegisterTile& lanes, int scalars) {
  const IndexRange range = RangeOf(tiling_.vector_index);
  const int64_t vectors =
      std::min(tiling_.vectors, range.extent / tiling_.lanes);
  const auto vector_block = [&](const Affine& start, int64_t extent) {
    bound_[tiling_.vector_index] = start;
    const VectorTile whole{tiling_.lanes, extent / tiling_.lanes, 0};
    std::vector<StmtPtr> parts;
    if (whole.full > 0) {
      parts.push_back(ForRowsAndVectors(
          out_, rows_, whole, [&](const Affine& row, const VectorPosition& at) {
            return lanes.Store(row, at, ValueAt(BindAt(row, at.position)),
                               stage_.reduction);
          }));
    }
    const int64_t partial = extent % tiling_.lanes;
    if (partial > 0) {
      parts.push_back(
          MakeLoop(out_, rows_, LoopKind::kUnrolled, [&](const Affine& row) {
            return MakeLoop(
                out_, partial, LoopKind::kVector, [&](const Affine& lane) {
                  const Affine position = lane + whole.Extent();
                  return loop::Store(scalars, row,
                                     loop::Cast(ValueAt(BindAt(row, position)),
                                                stage_.accumulator),
                                     stage_.reduction);
                });
          }));
    }
    return loop::Block(std::move(parts));
  };
  if (vectors == 0) return vector_block(range.start, range.extent);
  const int64_t width = vectors * tiling_.lanes;
  std::vector<StmtPtr> parts;
  const int64_t trips = range.extent / width;
  parts.push_back(MakeLoop(
      out_, trips, LoopKind::kSerial,
      [&](const Affine& var) {
        return vector_block(range.start + var * width, width);
      },
      tiling_.unroll));
  if (range.extent % width > 0) {
    parts.push_back(
        vector_block(range.start + trips * width, range.extent % width));
  }
  return loop::Block(std::move(parts));
}

StmtPtr StageLoops::CombineLanes(const RegisterTile& lanes, int scalars) {
  const int64_t vectors = std::min(
      tiling_.vectors, RangeOf(tiling_.vector_index).extent / tiling_.lanes);
  return MakeLoop(out_, rows_, LoopKind::kUnrolled, [&](const Affine& row) {
    const auto at = [&](const Affine& v, const Affine& lane) {
      const Affine slot = v * tiling_.lanes + lane;
      return VectorPosition{.piece = 0, .position = slot, .slot = slot};
    };
    std::vector<StmtPtr> parts;
    if (vectors > 1) {
      parts.push_back(MakeLoop(
          out_, vectors - 1, LoopKind::kUnrolled, [&](const Affine& v) {
            return MakeLoop(out_, tiling_.lanes, LoopKind::kVector,
                            [&](const Affine& lane) {
                              return lanes.Store(
                                  row, at(Affine(), lane),
                                  lanes.Load(row, at(v + 1, lane)),
                                  stage_.reduction);
                            });
          }));
    }
    parts.push_back(MakeLoop(
        out_, tiling_.lanes, LoopKind::kVector, [&](const Affine& lane) {
          return loop::Store(scalars, row, lanes.Load(row, at(Affine(), lane)),
                             stage_.reduction);
        }));
    return loop::Block(std::move(parts));
  });
}

}  // namespace regatta
