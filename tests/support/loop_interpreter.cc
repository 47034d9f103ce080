#include "tests/support/loop_interpreter.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/interp/scalar.h"
#include "compiler/lower/intrinsics.h"
#include "compiler/module/half.h"
#include "tests/support/race_detector.h"
#include "tests/support/warp_matrices.h"

namespace regatta {
namespace {

constexpr double kPoison = std::numeric_limits<double>::quiet_NaN();

bool IsOfWholeWarps(const loop::Stmt& stmt) {
  return stmt.kind == loop::Stmt::Kind::kIntrinsic &&
         loop::FindIntrinsic(stmt.intrinsic)->whole_warps;
}

// Whether threads meet in it: all of them have to come that far first.
bool Meets(const loop::Stmt& stmt) {
  return stmt.kind == loop::Stmt::Kind::kBarrier || IsOfWholeWarps(stmt) ||
         std::any_of(stmt.body.begin(), stmt.body.end(),
                     [](const loop::StmtPtr& child) { return Meets(*child); });
}

bool IsThreadsOwn(const loop::Buffer& buffer) {
  return buffer.scope == loop::Scope::kRegister ||
         buffer.scope == loop::Scope::kFragment;
}

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
      races_.emplace_back(IsThreadsOwn(buffer) ? 0 : buffer.elements);
    }
  }

  void Run() {
    for (const loop::Kernel& kernel : program_.kernels) {
      kernel_ = &kernel;
      moment_.kernel = moment_.group = moment_.now = moment_.now + 1;
      device_ = loop::IsDeviceKernel(kernel);
      if (device_) {
        RunGroups(*kernel.body);
      } else {
        Execute(*kernel.body);
      }
    }
  }

  LoopRun Result() && {
    LoopRun run;
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (program_.buffers[i].scope == loop::Scope::kOutput) {
        run.outputs.push_back(std::move(memory_[i]));
      }
    }
    run.race = std::move(race_);
    return run;
  }

 private:
  // An asynchronous copy on its way.
  struct Copy {
    int to;
    int64_t to_offset;
    int from;
    int64_t from_offset;
    int64_t bytes;
    bool reads;  // else zeros are written
  };

  // What a thread has to itself.
  struct Thread {
    // Its thread loops' variables and the lets around.
    std::vector<std::pair<int, int64_t>> place;
    std::vector<TensorValues> registers;    // per buffer; others empty
    std::vector<Copy> copies;               // since the last commit
    std::deque<std::vector<Copy>> batches;  // committed, oldest first
  };

  void RunGroups(const loop::Stmt& stmt) {
    if (stmt.kind == loop::Stmt::Kind::kFor &&
        stmt.loop == loop::LoopKind::kGroup) {
      for (int64_t i = 0; i < stmt.extent; ++i) {
        vars_[stmt.var] = i;
        RunGroups(*stmt.body[0]);
      }
      return;
    }
    Poison(loop::Scope::kLocal);
    threads_.clear();
    Thread first;
    for (const loop::Buffer& buffer : program_.buffers) {
      first.registers.emplace_back(IsThreadsOwn(buffer) ? buffer.elements : 0,
                                   kPoison);
    }
    const loop::Stmt& body = MakeThreads(stmt, std::move(first));
    moment_.group = ++moment_.now;
    ExecuteAll(body);
  }

  // One thread for every iteration of the thread loops; returns what each runs.
  const loop::Stmt& MakeThreads(const loop::Stmt& stmt, Thread thread) {
    if (stmt.kind != loop::Stmt::Kind::kFor ||
        stmt.loop != loop::LoopKind::kThread) {
      threads_.push_back(std::move(thread));
      return stmt;
    }
    const loop::Stmt* body = nullptr;
    for (int64_t i = 0; i < stmt.extent; ++i) {
      Thread next = thread;
      next.place.emplace_back(stmt.var, i);
      body = &MakeThreads(*stmt.body[0], std::move(next));
    }
    return *body;
  }

  void Enter(size_t thread) {
    moment_.thread = static_cast<int>(thread);
    for (const auto& [var, i] : threads_[thread].place) vars_[var] = i;
  }

  // All threads of a group. What holds a barrier is the same for all of them.
  void ExecuteAll(const loop::Stmt& stmt) {
    if (!Meets(stmt)) {
      for (size_t t = 0; t < threads_.size(); ++t) {
        Enter(t);
        Execute(stmt);
      }
      return;
    }
    switch (stmt.kind) {
      case loop::Stmt::Kind::kBlock:
        for (const loop::StmtPtr& child : stmt.body) ExecuteAll(*child);
        return;
      case loop::Stmt::Kind::kFor:
        for (int64_t i = 0; i < stmt.extent; ++i) {
          vars_[stmt.var] = i;
          ExecuteAll(*stmt.body[0]);
        }
        return;
      case loop::Stmt::Kind::kIf:
        if (Holds(stmt.guards)) ExecuteAll(*stmt.body[0]);
        return;
      case loop::Stmt::Kind::kLet:
        for (size_t t = 0; t < threads_.size(); ++t) {
          Enter(t);
          threads_[t].place.emplace_back(stmt.var, LetValue(stmt));
        }
        ExecuteAll(*stmt.body[0]);
        for (Thread& thread : threads_) thread.place.pop_back();
        return;
      case loop::Stmt::Kind::kBarrier:
        ++moment_.now;
        return;
      case loop::Stmt::Kind::kIntrinsic:
        for (size_t t = 0; t < threads_.size(); t += loop::kWarp) {
          ExecuteOfWarp(stmt, t);
        }
        return;
      case loop::Stmt::Kind::kStore:
        return;
    }
  }

  int64_t LetValue(const loop::Stmt& stmt) const {
    const int64_t form = At(stmt.offset);
    CHECK(form >= 0) << loop::ToString(program_, stmt);
    return form / stmt.divisor % stmt.extent;
  }

  // What operand `operand` of a thread has `element` elements on.
  double& OperandElement(const loop::IntrinsicOperand& operand, size_t thread,
                         int64_t element) {
    Enter(thread);
    const int64_t offset = At(operand.offset) + element;
    NoteRace(operand.buffer, offset, /*stores=*/false);
    return Element(operand.buffer, offset);
  }

  // An intrinsic of the warp whose first thread is `first`.
  void ExecuteOfWarp(const loop::Stmt& stmt, size_t first) {
    CHECK(first + loop::kWarp <= threads_.size()) << "part of a warp";
    const auto operand = [&](size_t i) {
      return [this, first, &at = stmt.operands[i]](int lane,
                                                   int64_t element) -> double& {
        return OperandElement(at, first + lane, element);
      };
    };
    if (const auto form = loop::MatrixForm(stmt.intrinsic)) {
      MultiplyFragments(*form, operand(0), operand(1), operand(2));
      return;
    }
    for (const int matrices : {1, 2, 4}) {
      for (const bool turned : {false, true}) {
        if (stmt.intrinsic != loop::LoadMatrix(matrices, turned)) continue;
        const DType dtype = program_.buffers[stmt.operands[0].buffer].dtype;
        LoadMatrices(matrices, turned, static_cast<int>(4 / DTypeBytes(dtype)),
                     operand(1), operand(0));
        return;
      }
    }
    CHECK(false) << "intrinsic " << stmt.intrinsic;
  }

  int64_t At(const Affine& form) const {
    int64_t value = form.constant();
    for (const Affine::Term& term : form.terms()) {
      value += term.coeff * vars_[term.var];
    }
    return value;
  }

  bool Holds(const std::vector<loop::Guard>& guards) const {
    return std::all_of(guards.begin(), guards.end(),
                       [&](const loop::Guard& guard) {
                         const int64_t form = At(guard.form);
                         return form >= 0 && form < guard.bound;
                       });
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
      case loop::Stmt::Kind::kIf:
        if (Holds(stmt.guards)) Execute(*stmt.body[0]);
        return;
      case loop::Stmt::Kind::kLet:
        vars_[stmt.var] = LetValue(stmt);
        Execute(*stmt.body[0]);
        return;
      case loop::Stmt::Kind::kBarrier:
        CHECK(false) << "a barrier for one thread";
      case loop::Stmt::Kind::kIntrinsic:
        ExecuteIntrinsic(stmt);
        return;
    }
  }

  void ExecuteIntrinsic(const loop::Stmt& stmt) {
    Thread& thread = threads_[moment_.thread];
    if (stmt.operands.size() == 2) {
      const loop::IntrinsicOperand& to = stmt.operands[0];
      const loop::IntrinsicOperand& from = stmt.operands[1];
      const Copy copy = {to.buffer,
                         At(to.offset),
                         from.buffer,
                         At(from.offset),
                         loop::FindIntrinsic(stmt.intrinsic)->operands[0].bytes,
                         Holds(from.guards)};
      if (stmt.intrinsic != loop::CopyAsync(copy.bytes)) {
        Land(copy);  // words
        return;
      }
      thread.copies.push_back(copy);
      // Neither the old contents nor the new may be read now.
      for (int64_t i = 0; i < CopyElements(copy); ++i) {
        NoteRace(to.buffer, copy.to_offset + i, /*stores=*/true);
        Element(to.buffer, copy.to_offset + i) = kPoison;
      }
    } else if (stmt.intrinsic == loop::kCommitAsync) {
      thread.batches.push_back(std::exchange(thread.copies, {}));
    } else if (stmt.intrinsic == loop::kWaitAsync) {
      while (static_cast<int64_t>(thread.batches.size()) >
             stmt.operands[0].number) {
        for (const Copy& copy : thread.batches.front()) Land(copy);
        thread.batches.pop_front();
      }
    } else {
      CHECK(false) << "intrinsic " << stmt.intrinsic;
    }
  }

  int64_t CopyElements(const Copy& copy) const {
    return copy.bytes / DTypeBytes(program_.buffers[copy.to].dtype);
  }

  void Land(const Copy& copy) {
    for (int64_t i = 0; i < CopyElements(copy); ++i) {
      NoteRace(copy.to, copy.to_offset + i, /*stores=*/true);
      double& to = Element(copy.to, copy.to_offset + i);
      to = 0;
      if (!copy.reads) continue;
      NoteRace(copy.from, copy.from_offset + i, /*stores=*/false);
      to = Element(copy.from, copy.from_offset + i);
    }
  }

  void Poison(loop::Scope scope) {
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (program_.buffers[i].scope != scope) continue;
      std::fill(memory_[i].begin(), memory_[i].end(), kPoison);
    }
  }

  void PoisonPerThread() {
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (!program_.buffers[i].per_thread) continue;
      std::fill(memory_[i].begin(), memory_[i].end(), kPoison);
    }
  }

  double& Element(int buffer, int64_t offset) {
    const loop::Buffer& described = program_.buffers[buffer];
    CHECK(offset >= 0 && offset < described.elements)
        << "element " << offset << " of " << described.name;
    if (device_ && IsThreadsOwn(described)) {
      return threads_[moment_.thread].registers[buffer][offset];
    }
    return memory_[buffer][loop::SwizzledElement(described, offset)];
  }

  void NoteRace(int buffer, int64_t offset, bool stores) {
    const loop::Buffer& described = program_.buffers[buffer];
    if (!device_ || IsThreadsOwn(described)) return;
    // Each group has its own: what another did there is no matter.
    RaceDetector::Moment moment = moment_;
    if (described.scope == loop::Scope::kLocal) moment.kernel = moment.group;
    const std::string other = stores ? races_[buffer].Store(offset, moment)
                                     : races_[buffer].Load(offset, moment);
    if (other.empty() || !race_.empty()) return;
    race_ = absl::StrCat("kernel ", kernel_->name, ": a ",
                         stores ? "store to " : "load of ", described.name, "[",
                         offset, "] and ", other);
  }

  void AddProducts(const loop::Stmt& stmt) {
    const loop::Value& value = *stmt.value;
    const auto element = [&](int operand, int64_t at) {
      const loop::Value& load = *value.operands[operand];
      NoteRace(load.buffer, At(load.offset) + at, false);
      return Element(load.buffer, At(load.offset) + at);
    };
    const loop::ProductBlock& block = value.block;
    for (int i = 0; i < block.rows; ++i) {
      for (int j = 0; j < block.cols; ++j) {
        double& sum =
            Element(stmt.buffer, At(stmt.offset) + block.cols * i + j);
        for (int e = 0; e < block.depth; ++e) {
          double a = element(0, block.depth * i + e);
          if (block.unsigned_a && a < 0) a += 256;
          const double product = a * element(1, block.depth * j + e);
          // Beyond the edge of a tile there may be anything.
          sum = std::isnan(sum + product)
                    ? kPoison
                    : ReduceStep(Reduction::kSum, sum, product, value.dtype);
        }
      }
    }
  }

  void Store(const loop::Stmt& stmt) {
    if (stmt.value->kind == loop::Value::Kind::kProducts) {
      AddProducts(stmt);
      return;
    }
    const DType type = program_.buffers[stmt.buffer].dtype;
    double value = Evaluate(*stmt.value);
    const int64_t offset = At(stmt.offset);
    double& element = Element(stmt.buffer, offset);
    if (stmt.accumulate != Reduction::kNone) {
      value = ReduceStep(stmt.accumulate, element, value, type);
    }
    NoteRace(stmt.buffer, offset, /*stores=*/true);
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
        if (!Holds(value.guards)) return value.constant;
        NoteRace(value.buffer, At(value.offset), /*stores=*/false);
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
      case loop::Value::Kind::kProducts:
        break;
    }
    CHECK(false) << "unknown value";
  }

  const loop::Program& program_;
  std::vector<int64_t> vars_;
  std::vector<TensorValues> memory_;
  // Device kernels only, from here on.
  std::vector<RaceDetector> races_;  // per buffer
  std::string race_;
  const loop::Kernel* kernel_ = nullptr;
  bool device_ = false;
  RaceDetector::Moment moment_;
  std::vector<Thread> threads_;  // of the running group
};

}  // namespace

LoopRun RunLoops(const loop::Program& program,
                 absl::Span<const TensorValues> inputs) {
  Machine machine(program, inputs);
  machine.Run();
  return std::move(machine).Result();
}

}  // namespace regatta
