#include "compiler/space/rules/fused_stages.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"

namespace regatta {

using loop::StmtPtr;
using loop::ValuePtr;

namespace {

// Whether `stage` works element by element on tensors first..stage-1 of the
// list of stages, at its own position.
bool Follows(const Workload& w, int first, int stage) {
  const Stage& s = w.stages[stage];
  if (s.reduction != Reduction::kNone) return false;
  if (w.tensors[s.tensor].shape != w.tensors[w.stages[first].tensor].shape) {
    return false;
  }
  bool reads_result = false;
  for (const Expr* access : Accesses(s.value)) {
    const bool inside = std::any_of(
        w.stages.begin() + first, w.stages.begin() + stage,
        [&](const Stage& earlier) { return earlier.tensor == access->tensor; });
    if (!inside) continue;
    reads_result = true;
    for (size_t d = 0; d < access->subscripts.size(); ++d) {
      if (access->subscripts[d] != Affine::Var(s.indices[d])) return false;
    }
  }
  return reads_result;
}

}  // namespace

int FusableStages(const Workload& workload, int first) {
  int count = 0;
  while (first + count + 1 < static_cast<int>(workload.stages.size()) &&
         Follows(workload, first, first + count + 1)) {
    ++count;
  }
  return count;
}

bool FusedStages::Stores(int i) const {
  const Workload& w = out_.workload();
  const int tensor = StageAt(i).tensor;
  if (w.tensors[tensor].role == TensorRole::kOutput || count_ == 1) return true;
  for (size_t later = first_ + count_; later < w.stages.size(); ++later) {
    for (const Expr* access : Accesses(w.stages[later].value)) {
      if (access->tensor == tensor) return true;
    }
  }
  return false;
}

Affine FusedStages::ResultOffset(const Bind& bind) const {
  std::vector<Affine> subscripts;
  for (int index : StageAt(0).indices) subscripts.push_back(Affine::Var(index));
  return out_.TensorOffset(StageAt(0).tensor, subscripts, bind);
}

StmtPtr FusedStages::Store(
    const RegisterTile& acc, const Affine& row, const VectorTile& tile,
    const std::function<Bind(const Affine& position)>& bind_at) const {
  const Workload& w = out_.workload();
  std::map<int, RegisterTile> values;  // by tensor
  std::vector<StmtPtr> body;
  for (int i = 0; i < count_; ++i) {
    const Stage& current = StageAt(i);
    const DType type = w.tensors[current.tensor].dtype;
    const bool stores = Stores(i);
    // Without a later fused stage the value goes straight to memory.
    const bool keeps = i + 1 < count_;
    if (keeps) {
      values.try_emplace(current.tensor, out_, absl::StrCat("fused", i), type,
                         1, tile);
    }
    body.push_back(ForVectors(out_, tile, [&](const VectorPosition& at) {
      const Bind bind = bind_at(at.position);
      // Fused stages have the same indices under other ids.
      const Bind bind_current = [&](int index) {
        for (size_t d = 0; d < current.indices.size(); ++d) {
          if (current.indices[d] == index) return bind(StageAt(0).indices[d]);
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
                           ResultOffset(bind), std::move(value),
                           Reduction::kNone, streaming_ && at.piece == 0);
      }
      return values.at(current.tensor).Store(Affine(), at, std::move(value));
    }));
    if (!keeps || !stores) continue;
    body.push_back(ForVectors(out_, tile, [&](const VectorPosition& at) {
      return loop::Store(out_.TensorBuffer(current.tensor),
                         ResultOffset(bind_at(at.position)),
                         values.at(current.tensor).Load(Affine(), at),
                         Reduction::kNone, streaming_ && at.piece == 0);
    }));
  }
  return loop::Block(std::move(body));
}

}  // namespace regatta
