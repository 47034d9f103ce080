#include "compiler/expr/expr.h"

#include <algorithm>

#include "base/check.h"

namespace regatta {
namespace {

double Operations(const Expr& expr) {
  double count =
      expr.kind == Expr::Kind::kUnary || expr.kind == Expr::Kind::kBinary ? 1
                                                                          : 0;
  for (const ExprPtr& operand : expr.operands) count += Operations(*operand);
  return count;
}

}  // namespace

int64_t TensorDecl::Elements() const {
  int64_t elements = 1;
  for (int64_t extent : shape) elements *= extent;
  return elements;
}

std::vector<int> Workload::TensorsWithRole(TensorRole role) const {
  std::vector<int> ids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].role == role) ids.push_back(static_cast<int>(i));
  }
  return ids;
}

double Workload::Flops() const {
  double flops = 0;
  for (const Stage& stage : stages) {
    double per_iteration = Operations(*stage.value);
    if (stage.reduction != Reduction::kNone) per_iteration += 1;
    for (int id : stage.indices) per_iteration *= indices[id].extent;
    for (int id : stage.reduce_indices) per_iteration *= indices[id].extent;
    flops += per_iteration;
  }
  return flops;
}

double Workload::Bytes() const {
  double bytes = 0;
  for (const TensorDecl& tensor : tensors) {
    if (tensor.role == TensorRole::kInternal) continue;
    bytes += static_cast<double>(tensor.Elements()) * DTypeBytes(tensor.dtype);
  }
  return bytes;
}

std::vector<Position> Positions(const std::vector<int64_t>& shape,
                                const Expr& access) {
  std::vector<Position> positions;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (access.carries.empty() || !access.carries[d]) {
      positions.push_back({d, 1, access.subscripts[d], shape[d]});
      continue;
    }
    CHECK(d > 0) << "the first dimension carries";
    Position& last = positions.back();
    last.form = last.form * shape[d] + access.subscripts[d];
    last.extent *= shape[d];
    ++last.count;
  }
  return positions;
}

bool Carries(const Expr& access) {
  return std::find(access.carries.begin(), access.carries.end(), true) !=
         access.carries.end();
}

std::function<int64_t(int)> Extents(const Workload& workload) {
  std::vector<int64_t> extents;
  for (const IndexVar& index : workload.indices) {
    extents.push_back(index.extent);
  }
  return [extents = std::move(extents)](int id) { return extents.at(id); };
}

}  // namespace regatta
