#include "compiler/lower/loop_builder.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "compiler/lower/rewrite.h"

namespace regatta {
namespace {

using loop::ValuePtr;

// The type that values of `type` are computed in: narrow floats as f32, narrow
// integers as i32. Rounding to the narrow type happens at stores and casts.
DType ComputeType(DType type) {
  switch (type) {
    case DType::kF16:
    case DType::kBF16:
      return DType::kF32;
    case DType::kI8:
      return DType::kI32;
    default:
      return type;
  }
}

// The type two operands of a comparison meet in.
DType CommonType(DType a, DType b) {
  if (a == DType::kF64 || b == DType::kF64) return DType::kF64;
  if (IsFloat(a) || IsFloat(b)) return DType::kF32;
  return DType::kI32;
}

bool IsComparison(BinaryOp op) {
  return op == BinaryOp::kLess || op == BinaryOp::kLessEqual ||
         op == BinaryOp::kEqual;
}

// A constant takes the type it is needed in; everything else is converted.
ValuePtr ConvertTo(ValuePtr value, DType type) {
  if (value->dtype == type) return value;
  if (value->kind == loop::Value::Kind::kConst) {
    return loop::Const(value->constant, type);
  }
  if (value->dtype == DType::kBool) {
    return loop::Select(std::move(value), loop::Const(1, type),
                        loop::Const(0, type));
  }
  return loop::Cast(std::move(value), type);
}

loop::StmtPtr Renumber(const loop::StmtPtr& stmt,
                       const std::vector<int>& new_id) {
  auto copy = std::make_shared<loop::Stmt>(*stmt);
  if (stmt->kind == loop::Stmt::Kind::kStore) {
    copy->buffer = new_id[stmt->buffer];
    copy->value = loop::RewriteValue(stmt->value, [&](ValuePtr node) {
      if (node->buffer < 0 || new_id[node->buffer] == node->buffer) return node;
      auto moved = std::make_shared<loop::Value>(*node);
      moved->buffer = new_id[node->buffer];
      return ValuePtr(std::move(moved));
    });
  }
  for (loop::IntrinsicOperand& operand : copy->operands) {
    if (operand.buffer >= 0) operand.buffer = new_id[operand.buffer];
  }
  for (loop::StmtPtr& child : copy->body) child = Renumber(child, new_id);
  return copy;
}

}  // namespace

Affine BindForm(const Affine& form, const std::function<Affine(int)>& bind) {
  Affine result(form.constant());
  for (const Affine::Term& term : form.terms()) {
    result = result + bind(term.var) * term.coeff;
  }
  return result;
}

LoopBuilder::LoopBuilder(const Workload& workload, int threads)
    : workload_(workload), tensor_buffer_(workload.tensors.size(), -1) {
  program_.threads = threads;
  const std::pair<TensorRole, loop::Scope> kRoles[] = {
      {TensorRole::kInput, loop::Scope::kInput},
      {TensorRole::kOutput, loop::Scope::kOutput},
      {TensorRole::kInternal, loop::Scope::kWorkspace}};
  for (const auto& [role, scope] : kRoles) {
    for (int id : workload.TensorsWithRole(role)) {
      const TensorDecl& tensor = workload.tensors[id];
      tensor_buffer_[id] = AddBuffer({.name = tensor.name,
                                      .dtype = tensor.dtype,
                                      .elements = tensor.Elements(),
                                      .scope = scope,
                                      .tensor = id});
    }
  }
}

int LoopBuilder::AddBuffer(loop::Buffer buffer) {
  program_.buffers.push_back(std::move(buffer));
  return static_cast<int>(program_.buffers.size()) - 1;
}

void LoopBuilder::AddKernel(std::string name, loop::StmtPtr body) {
  program_.kernels.push_back({std::move(name), std::move(body)});
}

Affine LoopBuilder::TensorOffset(
    int tensor, const std::vector<Affine>& subscripts,
    const std::function<Affine(int index)>& bind) const {
  const std::vector<int64_t>& shape = workload_.tensors[tensor].shape;
  CHECK(shape.size() == subscripts.size()) << "rank of tensor " << tensor;
  Affine offset;
  for (size_t d = 0; d < shape.size(); ++d) {
    offset = offset * shape[d] + BindForm(subscripts[d], bind);
  }
  return offset;
}

loop::ValuePtr LoopBuilder::Translate(
    const ExprPtr& expr, const std::function<Affine(int index)>& bind,
    const AccessHook& hook) const {
  const auto operand = [&](int i) {
    return Translate(expr->operands[i], bind, hook);
  };
  const DType type = ComputeType(expr->dtype);
  switch (expr->kind) {
    case Expr::Kind::kConst:
      return loop::Const(expr->constant, type);
    case Expr::Kind::kIndex:
      return loop::Index(BindForm(expr->subscripts[0], bind), type);
    case Expr::Kind::kAccess:
      if (hook) {
        if (std::optional<ValuePtr> value = hook(*expr)) {
          return ConvertTo(*std::move(value), type);
        }
      }
      return ConvertTo(LoadTensor(*expr, bind), type);
    case Expr::Kind::kUnary:
      return loop::Unary(expr->unary, ConvertTo(operand(0), type));
    case Expr::Kind::kBinary: {
      ValuePtr a = operand(0), b = operand(1);
      const DType meet =
          IsComparison(expr->binary) ? CommonType(a->dtype, b->dtype) : type;
      return loop::Binary(expr->binary, ConvertTo(std::move(a), meet),
                          ConvertTo(std::move(b), meet));
    }
    case Expr::Kind::kSelect:
      return loop::Select(operand(0), ConvertTo(operand(1), type),
                          ConvertTo(operand(2), type));
    case Expr::Kind::kCast:
      return ConvertTo(loop::Cast(operand(0), expr->dtype), type);
  }
  CHECK(false) << "unknown expression kind";
  return nullptr;
}

loop::ValuePtr LoopBuilder::LoadTensor(
    const Expr& access, const std::function<Affine(int index)>& bind) const {
  const int id = TensorBuffer(access.tensor);
  std::vector<loop::Guard> guards;
  if (access.pad_value) {
    const std::vector<int64_t>& shape = workload_.tensors[access.tensor].shape;
    const auto extent = [&](int i) { return workload_.indices[i].extent; };
    for (const Position& at : Positions(shape, access)) {
      if (at.form.Min(extent) < 0 || at.form.Max(extent) >= at.extent) {
        guards.push_back({BindForm(at.form, bind), at.extent});
      }
    }
  }
  return loop::Load(buffer(id), id,
                    TensorOffset(access.tensor, access.subscripts, bind),
                    std::move(guards), access.pad_value.value_or(0));
}

loop::Program LoopBuilder::Finish() {
  std::vector<bool> used(program_.buffers.size(), false);
  for (const loop::Kernel& kernel : program_.kernels) {
    loop::VisitBuffers(*kernel.body,
                       [&](int buffer, bool) { used[buffer] = true; });
  }
  std::vector<int> new_id(program_.buffers.size(), -1);
  std::vector<loop::Buffer> kept;
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const loop::Scope scope = program_.buffers[i].scope;
    if (!used[i] && scope != loop::Scope::kInput &&
        scope != loop::Scope::kOutput) {
      continue;
    }
    new_id[i] = static_cast<int>(kept.size());
    kept.push_back(program_.buffers[i]);
  }
  if (kept.size() != program_.buffers.size()) {
    for (loop::Kernel& kernel : program_.kernels) {
      kernel.body = Renumber(kernel.body, new_id);
    }
    program_.buffers = std::move(kept);
  }
  return std::move(program_);
}

}  // namespace regatta
