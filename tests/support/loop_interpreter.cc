#include "tests/support/loop_interpreter.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "compiler/interp/scalar.h"
#include "compiler/module/half.h"

namespace regatta {
namespace {

constexpr double kPoison = std::numeric_limits<double>::quiet_NaN();

class Machine {
 public:
  Machine(const loop::Program& program, absl::Span<const TensorValues> inputs)
      : program_(program), vars_(program.num_vars, 0) {
    size_t next = 0;
    for (const loop::Buffer& buffer : program.buffers) {
      if (buffer.scope == loop::Scope::kInput) {
        CHECK(static_cast<int64_t>(inputs[next].size()) == buffer.elements);
        memory_.push_back(inputs[next++]);
      } else {
        memory_.emplace_back(buffer.elements, kPoison);
      }
    }
  }

  void Run() {
    for (const loop::Kernel& kernel : program_.kernels) Execute(*kernel.body);
  }

  std::vector<TensorValues> Outputs() && {
    std::vector<TensorValues> outputs;
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (program_.buffers[i].scope == loop::Scope::kOutput) {
        outputs.push_back(std::move(memory_[i]));
      }
    }
    return outputs;
  }

 private:
  int64_t At(const Affine& form) const {
    int64_t value = form.constant();
    for (const Affine::Term& term : form.terms()) {
      value += term.coeff * vars_[term.var];
    }
    return value;
  }

  void Execute(const loop::Stmt& stmt) {
    switch (stmt.kind) {
      case loop::Stmt::Kind::kBlock:
        for (const loop::StmtPtr& child : stmt.body) Execute(*child);
        return;
      case loop::Stmt::Kind::kFor:
        for (int64_t i = 0; i < stmt.extent; ++i) {
          if (stmt.loop == loop::LoopKind::kParallel) PoisonPerThread();
          vars_[stmt.var] = i;
          Execute(*stmt.body[0]);
        }
        return;
      case loop::Stmt::Kind::kStore:
        Store(stmt);
        return;
    }
  }

  void PoisonPerThread() {
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (!program_.buffers[i].per_thread) continue;
      std::fill(memory_[i].begin(), memory_[i].end(), kPoison);
    }
  }

  double& Element(int buffer, int64_t offset) {
    CHECK(offset >= 0 && offset < program_.buffers[buffer].elements)
        << "element " << offset << " of " << program_.buffers[buffer].name;
    return memory_[buffer][offset];
  }

  void Store(const loop::Stmt& stmt) {
    const DType type = program_.buffers[stmt.buffer].dtype;
    double value = Evaluate(*stmt.value);
    double& element = Element(stmt.buffer, At(stmt.offset));
    if (stmt.accumulate != Reduction::kNone) {
      value = ReduceStep(stmt.accumulate, element, value, type);
    }
    element = RoundToDType(value, type);
  }

  double Evaluate(const loop::Value& value) {
    const auto operand = [&](int i) { return Evaluate(*value.operands[i]); };
    switch (value.kind) {
      case loop::Value::Kind::kConst:
        return value.constant;
      case loop::Value::Kind::kIndex:
        return static_cast<double>(At(value.offset));
      case loop::Value::Kind::kLoad:
        for (const loop::Guard& guard : value.guards) {
          const int64_t form = At(guard.form);
          if (form < 0 || form >= guard.bound) return value.constant;
        }
        return Element(value.buffer, At(value.offset));
      case loop::Value::Kind::kUnary:
        return ApplyUnary(value.unary, operand(0), value.dtype);
      case loop::Value::Kind::kBinary:
        return ApplyBinary(value.binary, operand(0), operand(1),
                           value.operands[0]->dtype);
      case loop::Value::Kind::kSelect:
        return operand(0) != 0 ? operand(1) : operand(2);
      case loop::Value::Kind::kCast:
        return CastToDType(operand(0), value.operands[0]->dtype, value.dtype);
    }
    CHECK(false) << "unknown value";
  }

  const loop::Program& program_;
  std::vector<int64_t> vars_;
  std::vector<TensorValues> memory_;
};

}  // namespace

std::vector<TensorValues> RunLoops(const loop::Program& program,
                                   absl::Span<const TensorValues> inputs) {
  Machine machine(program, inputs);
  machine.Run();
  return std::move(machine).Outputs();
}

}  // namespace regatta
