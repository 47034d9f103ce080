#include "compiler/lower/passes/fold_guards.h"

#include <memory>
#include <utility>

#include "compiler/lower/rewrite.h"

namespace regatta::loop {
namespace {

ValuePtr FoldLoad(ValuePtr load, const LoopExtents& loops) {
  const auto extent = [&](int var) { return loops.at(var); };
  std::vector<Guard> kept;
  for (const Guard& guard : load->guards) {
    const int64_t min = guard.form.Min(extent);
    const int64_t max = guard.form.Max(extent);
    if (max < 0 || min >= guard.bound) {
      return Const(load->constant, load->dtype);
    }
    if (min < 0 || max >= guard.bound) kept.push_back(guard);
  }
  if (kept.size() == load->guards.size()) return load;
  auto copy = std::make_shared<Value>(*load);
  copy->guards = std::move(kept);
  return copy;
}

}  // namespace

Program FoldGuards(Program program) {
  for (Kernel& kernel : program.kernels) {
    kernel.body = RewriteStores(
        kernel.body, [](const ValuePtr& value, const LoopExtents& loops) {
          return RewriteValue(value, [&](ValuePtr node) {
            if (node->kind != Value::Kind::kLoad) return node;
            return FoldLoad(std::move(node), loops);
          });
        });
  }
  return program;
}

}  // namespace regatta::loop
