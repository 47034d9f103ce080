#include "compiler/space/rules/device/matrix_tiles_emitter.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/lower/intrinsics.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/device/fused_index.h"
#include "compiler/space/rules/device/split_sums.h"
#include "compiler/space/rules/fused_stages.h"
#include "compiler/space/rules/loop_nest.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;

namespace {

StmtPtr Commit() { return loop::CallIntrinsic(loop::kCommitAsync); }
StmtPtr Wait(int64_t batches) {
  return loop::CallIntrinsic(loop::kWaitAsync, {{.number = batches}});
}

}  // namespace

MatrixTilesEmitter::MatrixTilesEmitter(const MatrixTilesShape& shape,
                                       const MatrixTiling& tiling,
                                       int stage_count, bool copies_async,
                                       LoopBuilder& out)
    : shape_(shape),
      t_(tiling),
      stage_count_(stage_count),
      out_(out),
      pairs_(shape.b.across.extent() % 2 == 0),
      a_("a", shape.a, shape.sum,
         {tiling.rows, tiling.depth, tiling.stages, tiling.Threads()},
         CopyWayOf(shape.a, copies_async), out),
      b_("b", shape.b, shape.sum,
         {tiling.columns, tiling.depth, tiling.stages, tiling.Threads()},
         CopyWayOf(shape.b, copies_async), out),
      products_(shape_, t_, a_, b_, pairs_, out) {
  if (t_.splits > 1) {
    workspace_ = AddSplitSums(out, shape.contraction.stage, t_.splits);
  }
}

int64_t MatrixTilesEmitter::Slices() const {
  return CeilDiv(CeilDiv(shape_.sum.extent(), t_.depth), t_.splits);
}

bool MatrixTilesEmitter::Asynchronous() const {
  return a_.way() == CopyWay::kAsync || b_.way() == CopyWay::kAsync;
}

void MatrixTilesEmitter::Emit() {
  const int group = out_.NewVar(), thread = out_.NewVar();
  const Affine t = Affine::Var(thread);
  StmtPtr body = WithGroup(Affine::Var(group), [&] {
    return a_.WithThread(t, [&] {
      return b_.WithThread(
          t, [&] { return products_.WithThread(t, [&] { return Thread(); }); });
    });
  });
  body = loop::For(thread, t_.Threads(), LoopKind::kThread, std::move(body));
  body = loop::For(group, groups_, LoopKind::kGroup, std::move(body));
  const std::string& name = out_.workload().tensors[stage().tensor].name;
  out_.AddKernel(absl::StrCat("matrix_tiles_", name), std::move(body));
  if (t_.splits > 1) {
    AddUpSplitSums(out_, shape_.contraction.stage, stage_count_, t_.splits,
                   workspace_);
  }
}

// Neighbouring groups go down `raster` rows of tiles, then to the next column.
StmtPtr MatrixTilesEmitter::WithGroup(const Affine& group,
                                      const std::function<StmtPtr()>& body) {
  const int64_t row_tiles = CeilDiv(shape_.a.across.extent(), t_.rows);
  struct Part {
    Affine* of;
    int64_t extent;
  };
  Affine in_raster, raster;
  std::vector<Part> parts = {{&in_raster, t_.raster},
                             {&column_tile_, CeilDiv(Columns(), t_.columns)},
                             {&raster, row_tiles / t_.raster},
                             {&split_, t_.splits}};
  for (const int index : shape_.outer) {
    parts.push_back({&bound_[index], out_.workload().indices[index].extent});
  }
  const std::function<StmtPtr(size_t, int64_t)> from = [&](size_t i,
                                                           int64_t divisor) {
    if (i == parts.size()) {
      groups_ = divisor;
      row_tile_ = raster * t_.raster + in_raster;
      return body();
    }
    return WithPart(out_, group, divisor, parts[i].extent,
                    [&](const Affine& part) {
                      *parts[i].of = part;
                      return from(i + 1, divisor * parts[i].extent);
                    });
  };
  return from(0, 1);
}

StmtPtr MatrixTilesEmitter::Thread() {
  std::vector<StmtPtr> program = {
      products_.Clear(), t_.stages == 1 ? OneStage() : Ring(), Results()};
  return loop::Block(std::move(program));
}

StmtPtr MatrixTilesEmitter::BeginSlice(const Affine& slice,
                                       const Affine& stage) const {
  const Affine depth = split_ * Slices() + slice;
  return loop::Block({a_.Begin(row_tile_, depth, stage, bound_),
                      b_.Begin(column_tile_, depth, stage, bound_)});
}

StmtPtr MatrixTilesEmitter::FinishSlice(const Affine& stage) const {
  return loop::Block({a_.Finish(stage), b_.Finish(stage)});
}

// Nobody overwrites a slice that another thread still reads, and nobody reads
// one before it is whole.
StmtPtr MatrixTilesEmitter::OneStage() {
  return MakeLoop(out_, Slices(), LoopKind::kSerial, [&](const Affine& slice) {
    std::vector<StmtPtr> parts = {loop::Barrier(), BeginSlice(slice, Affine()),
                                  FinishSlice(Affine())};
    if (Asynchronous()) {
      parts.push_back(Commit());
      parts.push_back(Wait(0));
    }
    parts.push_back(loop::Barrier());
    parts.push_back(products_.Add(Affine()));
    return loop::Block(std::move(parts));
  });
}

// One barrier a slice: behind it the slice is whole for all threads, and nobody
// reads any more the stage that the next copy goes to. A batch is committed for
// every slice, also where none is left, so that the count of those on their way
// stays the same.
StmtPtr MatrixTilesEmitter::Ring() {
  const int64_t early = t_.stages - 1;  // slices that are ahead
  std::vector<StmtPtr> program;
  for (int64_t slice = 0; slice < early; ++slice) {
    if (slice < Slices()) {
      program.push_back(BeginSlice(Affine(slice), Affine(slice)));
      program.push_back(FinishSlice(Affine(slice)));
    }
    if (Asynchronous()) program.push_back(Commit());
  }
  const auto if_left = [&](const Affine& slice, StmtPtr body) {
    return loop::If({{slice + early, Slices()}}, std::move(body));
  };
  program.push_back(
      MakeLoop(out_, Slices(), LoopKind::kSerial, [&](const Affine& slice) {
        return WithPart(out_, slice, 1, t_.stages, [&](const Affine& stage) {
          return WithPart(
              out_, slice + early, 1, t_.stages, [&](const Affine& next) {
                std::vector<StmtPtr> parts;
                if (Asynchronous()) parts.push_back(Wait(early - 1));
                parts.push_back(loop::Barrier());
                parts.push_back(
                    if_left(slice, BeginSlice(slice + early, next)));
                if (Asynchronous()) parts.push_back(Commit());
                parts.push_back(products_.Add(stage));
                parts.push_back(if_left(slice, FinishSlice(next)));
                return loop::Block(std::move(parts));
              });
        });
      }));
  return loop::Block(std::move(program));
}

StmtPtr MatrixTilesEmitter::Results() {
  return MakeLoop(out_, products_.rows(), LoopKind::kUnrolled,
                  [&](const Affine& row) { return ResultRow(row); });
}

StmtPtr MatrixTilesEmitter::ResultRow(const Affine& row) {
  const FusedIndex& rows = shape_.a.across;
  const Affine place = row_tile_ * t_.rows + products_.Row(row);
  return loop::If({rows.Inside(place, 1)},
                  rows.Bind(out_, place, 1, bound_, [&] {
                    std::vector<StmtPtr> blocks;
                    for (int64_t i = 0; i < products_.blocks(); ++i) {
                      for (int64_t c = 0; c < (pairs_ ? 1 : 2); ++c) {
                        blocks.push_back(StoreBlock(row, i, c));
                      }
                    }
                    return loop::Block(std::move(blocks));
                  }));
}

// Column `column` of a block, or both at once.
StmtPtr MatrixTilesEmitter::StoreBlock(const Affine& row, int64_t block,
                                       int64_t column) {
  const Affine half =
      column_tile_ * (t_.columns / 2) + products_.HalfColumn(block);
  const Affine first = half * 2 + column;
  const auto bind_at = [&](const Affine& position) -> Bind {
    return [bound = bound_, at = first + position,
            vector = shape_.contraction.vector](int index) {
      return index == vector ? at : bound.at(index);
    };
  };
  const RegisterTile& sums = products_.Sums(block);
  const Affine sums_row = pairs_ ? row : row * 2 + column;
  const VectorTile tile = products_.Tile();
  StmtPtr store;
  if (t_.splits == 1) {
    store = FusedStages(out_, shape_.contraction.stage, stage_count_)
                .Store(sums, sums_row, tile, bind_at);
  } else {
    std::vector<Affine> subscripts;
    for (const int index : stage().indices) {
      subscripts.push_back(Affine::Var(index));
    }
    const int64_t elements = SplitElements(out_, shape_.contraction.stage);
    store = ForVectors(out_, tile, [&](const VectorPosition& at) {
      return loop::Store(
          workspace_,
          split_ * elements + out_.TensorOffset(stage().tensor, subscripts,
                                                bind_at(at.position)),
          sums.Load(sums_row, at));
    });
  }
  const loop::Guard inside =
      pairs_ ? loop::Guard{half, Columns() / 2} : loop::Guard{first, Columns()};
  return loop::If({inside}, std::move(store));
}

}  // namespace regatta
