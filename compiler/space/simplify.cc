#include "compiler/space/simplify.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "compiler/space/rules/accesses.h"

namespace regatta {
namespace {

// Calls `change` on every node of `expr` that has subscripts; returns the
// changed expression.
ExprPtr Rewrite(const ExprPtr& expr, const std::function<void(Expr&)>& change) {
  auto copy = std::make_shared<Expr>(*expr);
  if (!copy->subscripts.empty()) change(*copy);
  for (ExprPtr& operand : copy->operands) operand = Rewrite(operand, change);
  return copy;
}

// Gives every stage index ids of its own, so that what one stage allows does
// not bind another, and leaves out indices of one iteration.
void SeparateStages(Workload& w) {
  std::vector<IndexVar> indices;
  for (Stage& stage : w.stages) {
    std::map<int, int> fresh;
    const auto rename = [&](std::vector<int>& ids) {
      std::vector<int> kept;
      for (int id : ids) {
        if (w.indices[id].extent == 1) continue;
        fresh[id] = static_cast<int>(indices.size());
        kept.push_back(fresh[id]);
        indices.push_back(w.indices[id]);
      }
      ids = std::move(kept);
    };
    // An output dimension without an index is written at 0 only.
    rename(stage.indices);
    rename(stage.reduce_indices);
    if (stage.reduce_indices.empty()) stage.reduction = Reduction::kNone;
    const auto bind = [&](int id) {
      const auto it = fresh.find(id);
      return it == fresh.end() ? Affine() : Affine::Var(it->second);
    };
    stage.value = Rewrite(stage.value, [&](Expr& node) {
      for (Affine& form : node.subscripts) {
        Affine renamed(form.constant());
        for (const Affine::Term& term : form.terms()) {
          renamed = renamed + bind(term.var) * term.coeff;
        }
        form = std::move(renamed);
      }
    });
  }
  w.indices = std::move(indices);
}

// Drops the dimensions of size 1 that are only ever accessed at 0. Outputs have
// lost theirs with the indices.
void DropUnitDimensions(Workload& w) {
  std::vector<std::vector<bool>> keep;
  std::vector<bool> assigned(w.tensors.size(), false);
  for (const Stage& stage : w.stages) assigned[stage.tensor] = true;
  for (const TensorDecl& tensor : w.tensors) {
    std::vector<bool> dims;
    for (int64_t extent : tensor.shape) dims.push_back(extent != 1);
    keep.push_back(std::move(dims));
  }
  // A padded access may step outside a dimension of size 1.
  for (const Stage& stage : w.stages) {
    for (const Expr* access : Accesses(stage.value)) {
      for (size_t d = 0; d < access->subscripts.size(); ++d) {
        if (access->subscripts[d] != Affine()) keep[access->tensor][d] = true;
      }
    }
  }
  // An assigned tensor whose unit dimension must stay gets its index back.
  for (Stage& stage : w.stages) {
    std::vector<int> indices;
    size_t next = 0;
    const std::vector<int64_t>& shape = w.tensors[stage.tensor].shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != 1) {
        indices.push_back(stage.indices[next++]);
      } else if (keep[stage.tensor][d]) {
        indices.push_back(static_cast<int>(w.indices.size()));
        w.indices.push_back({.name = "unit", .extent = 1});
      }
    }
    stage.indices = std::move(indices);
  }
  const auto whole = [](const std::vector<bool>& dims) {
    return std::find(dims.begin(), dims.end(), false) == dims.end();
  };
  if (std::all_of(keep.begin(), keep.end(), whole)) return;
  const auto filter = [](const std::vector<bool>& dims, auto& list) {
    size_t kept = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d]) list[kept++] = list[d];
    }
    list.resize(kept);
  };
  for (Stage& stage : w.stages) {
    stage.value = Rewrite(stage.value, [&](Expr& node) {
      if (node.kind != Expr::Kind::kAccess) return;
      const std::vector<bool>& dims = keep[node.tensor];
      // What carried into a dimension that goes carries on as that one did.
      for (size_t d = 0; d + 1 < node.carries.size(); ++d) {
        if (!dims[d] && node.carries[d + 1]) {
          node.carries[d + 1] = bool(node.carries[d]);
        }
      }
      filter(dims, node.subscripts);
      if (!node.carries.empty()) filter(dims, node.carries);
    });
  }
  for (size_t t = 0; t < w.tensors.size(); ++t) {
    filter(keep[t], w.tensors[t].shape);
  }
}

// Which neighbouring dimensions are always walked together.
class Merger {
 public:
  explicit Merger(const Workload& w) : w_(w), merges_(w.tensors.size()) {
    for (size_t t = 0; t < w.tensors.size(); ++t) {
      const size_t rank = w.tensors[t].shape.size();
      merges_[t].assign(rank == 0 ? 0 : rank - 1, true);
    }
    bool changed = true;
    while (changed) {
      changed = false;
      for (const Stage& stage : w.stages) changed |= Check(stage);
    }
  }

  bool MergesAny() const;
  Workload Apply() const;

 private:
  // One tensor and its subscripts in a stage.
  struct Use {
    int tensor;
    std::vector<Affine> subscripts;
    std::vector<bool> carries;
    bool Carries(size_t d) const { return !carries.empty() && carries[d]; }
  };

  std::vector<Use> Uses(const Stage& stage) const {
    Use result{.tensor = stage.tensor};
    for (int id : stage.indices) result.subscripts.push_back(Affine::Var(id));
    std::vector<Use> uses = {std::move(result)};
    for (const Expr* access : Accesses(stage.value)) {
      uses.push_back({access->tensor, access->subscripts, access->carries});
    }
    return uses;
  }

  // The variable of a plain subscript that stays inside its dimension, or -1.
  int Plain(const Affine& form, int64_t size) const {
    if (form.constant() != 0 || form.terms().size() != 1) return -1;
    const Affine::Term& term = form.terms()[0];
    if (term.coeff != 1 || w_.indices[term.var].extent > size) return -1;
    return term.var;
  }

  // Whether dimensions d and d + 1 of `use` are walked by two plain indices,
  // the second over its whole dimension.
  bool IsPair(const Stage& stage, const Use& use, size_t d, int* u,
              int* v) const {
    const std::vector<int64_t>& shape = w_.tensors[use.tensor].shape;
    if (use.Carries(d) || use.Carries(d + 1)) return false;
    *u = Plain(use.subscripts[d], shape[d]);
    *v = Plain(use.subscripts[d + 1], shape[d + 1]);
    if (*u < 0 || *v < 0 || *u == *v) return false;
    if (w_.indices[*v].extent != shape[d + 1]) return false;
    const auto reduced = [&](int id) {
      return std::count(stage.reduce_indices.begin(),
                        stage.reduce_indices.end(), id) > 0;
    };
    return reduced(*u) == reduced(*v);
  }

  // Indices whose number is part of the value.
  static void Numbers(const Expr& expr, std::set<int>& found) {
    if (expr.kind == Expr::Kind::kIndex) {
      for (const Affine::Term& term : expr.subscripts[0].terms()) {
        found.insert(term.var);
      }
    }
    for (const ExprPtr& operand : expr.operands) Numbers(*operand, found);
  }

  // Takes back merges that this stage does not allow. True when any was.
  bool Check(const Stage& stage) {
    bool changed = false;
    const std::vector<Use> uses = Uses(stage);
    std::set<int> numbers;
    Numbers(*stage.value, numbers);
    for (const Use& use : uses) {
      for (size_t d = 0; d < merges_[use.tensor].size(); ++d) {
        if (!merges_[use.tensor][d]) continue;
        int u, v;
        const bool pair = IsPair(stage, use, d, &u, &v);
        if (pair && !numbers.count(u) && !numbers.count(v) &&
            AlwaysTogether(stage, uses, u, v)) {
          continue;
        }
        merges_[use.tensor][d] = false;
        changed = true;
      }
    }
    return changed;
  }

  bool AlwaysTogether(const Stage& stage, const std::vector<Use>& uses, int u,
                      int v) const {
    for (const Use& use : uses) {
      for (size_t d = 0; d < use.subscripts.size(); ++d) {
        const Affine& form = use.subscripts[d];
        const bool has_u = form.Coeff(u) != 0, has_v = form.Coeff(v) != 0;
        if (!has_u && !has_v) continue;
        const size_t first = has_u ? d : d - 1;
        if (has_v && d == 0) return false;
        if (first + 1 >= use.subscripts.size()) return false;
        int a, b;
        if (!merges_[use.tensor][first] || !IsPair(stage, use, first, &a, &b) ||
            a != u || b != v) {
          return false;
        }
      }
    }
    return true;
  }

  const Workload& w_;
  std::vector<std::vector<bool>> merges_;  // [tensor][d]: d with d + 1
};

bool Merger::MergesAny() const {
  return std::any_of(merges_.begin(), merges_.end(), [](const auto& dims) {
    return std::find(dims.begin(), dims.end(), true) != dims.end();
  });
}

Workload Merger::Apply() const {
  Workload out = w_;
  // Within a chain of merged indices the first one stands for all.
  std::map<int, int> leader;
  const auto leader_of = [&](int id) {
    while (leader.count(id)) id = leader.at(id);
    return id;
  };
  for (const Stage& stage : w_.stages) {
    for (const Use& use : Uses(stage)) {
      for (size_t d = 0; d < merges_[use.tensor].size(); ++d) {
        if (!merges_[use.tensor][d]) continue;
        const int u = use.subscripts[d].terms()[0].var;
        const int v = use.subscripts[d + 1].terms()[0].var;
        if (!leader.count(v)) leader[v] = u;
      }
    }
  }
  for (const auto& [id, unused] : leader) {
    IndexVar& first = out.indices[leader_of(id)];
    first.extent *= w_.indices[id].extent;
    first.name += w_.indices[id].name;
  }
  const auto drop = [&](std::vector<int>& ids) {
    std::erase_if(ids, [&](int id) { return leader.count(id) > 0; });
  };
  // Of merged dimensions the first keeps its (leading) subscript.
  const auto keep_first = [&](int tensor, auto& list) {
    size_t kept = 0;
    for (size_t d = 0; d < list.size(); ++d) {
      if (d > 0 && merges_[tensor][d - 1]) continue;
      list[kept++] = list[d];
    }
    list.resize(kept);
  };
  for (Stage& stage : out.stages) {
    drop(stage.indices);
    drop(stage.reduce_indices);
    stage.value = Rewrite(stage.value, [&](Expr& node) {
      if (node.kind == Expr::Kind::kAccess) {
        keep_first(node.tensor, node.subscripts);
        if (!node.carries.empty()) keep_first(node.tensor, node.carries);
      }
    });
  }
  for (size_t t = 0; t < out.tensors.size(); ++t) {
    std::vector<int64_t>& shape = out.tensors[t].shape;
    for (size_t d = shape.size(); d-- > 1;) {
      if (merges_[t][d - 1]) shape[d - 1] *= shape[d];
    }
    keep_first(static_cast<int>(t), shape);
  }
  return out;
}

}  // namespace

Workload Simplify(const Workload& workload) {
  Workload w = workload;
  SeparateStages(w);
  DropUnitDimensions(w);
  const Merger merger(w);
  return merger.MergesAny() ? merger.Apply() : w;
}

}  // namespace regatta
