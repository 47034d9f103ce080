#include "compiler/space/rules/device/split_sums.h"

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/device/fused_index.h"
#include "compiler/space/rules/fused_stages.h"
#include "compiler/space/rules/loop_nest.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;

namespace {

constexpr int64_t kThreads = 128;
constexpr int64_t kWidestVector = 4;

}  // namespace

int64_t SplitElements(const LoopBuilder& out, int stage) {
  const Workload& w = out.workload();
  return w.tensors[w.stages[stage].tensor].Elements();
}

int AddSplitSums(LoopBuilder& out, int stage, int64_t splits) {
  return out.AddBuffer({.name = "split_sums",
                        .dtype = out.workload().stages[stage].accumulator,
                        .elements = splits * SplitElements(out, stage),
                        .scope = loop::Scope::kWorkspace});
}

void AddUpSplitSums(LoopBuilder& out, int stage, int stage_count,
                    int64_t splits, int workspace) {
  const Workload& w = out.workload();
  const FusedIndex all(w, w.stages[stage].indices);
  int64_t lanes = kWidestVector;
  while (w.indices[all.last()].extent % lanes != 0) lanes /= 2;
  const VectorTile tile{.lanes = lanes};
  const RegisterTile sum(out, "sum", w.stages[stage].accumulator, 1, tile);
  const int group = out.NewVar(), thread = out.NewVar();
  const Affine place = Affine::Var(group, kThreads) + Affine::Var(thread);
  const auto part = [&](const Affine& p, Reduction join) {
    return ForVectors(out, tile, [&](const VectorPosition& at) {
      return sum.Store(
          Affine(), at,
          loop::Load(out.buffer(workspace), workspace,
                     p * all.extent() + place * lanes + at.position),
          join);
    });
  };
  std::map<int, Affine> bound;
  const auto results = [&] {
    return FusedStages(out, stage, stage_count)
        .Store(sum, Affine(), tile, [&](const Affine& position) {
          return [bound, position, last = all.last()](int index) {
            return index == last ? bound.at(index) + position : bound.at(index);
          };
        });
  };
  StmtPtr body = loop::Block(
      {part(Affine(), Reduction::kNone),
       MakeLoop(
           out, splits - 1, LoopKind::kSerial,
           [&](const Affine& p) { return part(p + 1, Reduction::kSum); },
           splits),
       all.Bind(out, place, lanes, bound, results)});
  body = loop::If({all.Inside(place, lanes)}, std::move(body));
  body = loop::For(thread, kThreads, LoopKind::kThread, std::move(body));
  body = loop::For(group, CeilDiv(all.extent() / lanes, kThreads),
                   LoopKind::kGroup, std::move(body));
  out.AddKernel(
      absl::StrCat("split_sums_", w.tensors[w.stages[stage].tensor].name),
      std::move(body));
}

}  // namespace regatta
