#include "compiler/space/rules/device/fused_index.h"

#include <utility>

#include "base/check.h"

namespace regatta {

using loop::StmtPtr;

StmtPtr WithPart(LoopBuilder& out, const Affine& form, int64_t divisor,
                 int64_t extent,
                 const std::function<StmtPtr(const Affine&)>& body) {
  if (extent == 1) return body(Affine());
  if (form.IsConstant()) {
    return body(Affine(form.constant() / divisor % extent));
  }
  const int var = out.NewVar();
  return loop::Let(var, extent, form, divisor, body(Affine::Var(var)));
}

FusedIndex::FusedIndex(const Workload& workload, std::vector<int> indices)
    : indices_(std::move(indices)) {
  CHECK(!indices_.empty());
  for (const int index : indices_) {
    extents_.push_back(workload.indices[index].extent);
    extent_ *= extents_.back();
  }
}

StmtPtr FusedIndex::Bind(LoopBuilder& out, const Affine& place, int64_t step,
                         std::map<int, Affine>& bound,
                         const std::function<StmtPtr()>& body) const {
  CHECK(extents_.back() % step == 0);
  if (indices_.size() == 1) {
    bound[last()] = place * step;
    return body();
  }
  return BindFrom(0, out, place, step, bound, body);
}

StmtPtr FusedIndex::BindFrom(size_t at, LoopBuilder& out, const Affine& place,
                             int64_t step, std::map<int, Affine>& bound,
                             const std::function<StmtPtr()>& body) const {
  if (at == indices_.size()) return body();
  const bool last = at + 1 == indices_.size();
  int64_t inner = 1;  // numbers for each value of this index
  for (size_t i = at + 1; i < indices_.size(); ++i) inner *= extents_[i];
  return WithPart(out, place, last ? 1 : inner / step,
                  last ? extents_[at] / step : extents_[at],
                  [&](const Affine& part) {
                    bound[indices_[at]] = last ? part * step : part;
                    return BindFrom(at + 1, out, place, step, bound, body);
                  });
}

}  // namespace regatta
