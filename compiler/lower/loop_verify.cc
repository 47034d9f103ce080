// Statements of the verifier.
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/lower/loop_range.h"
#include "compiler/lower/loop_verifier.h"
#include "compiler/lower/value_types.h"

namespace regatta::loop {

absl::Status Verifier::Run() {
  RETURN_IF_ERROR(CheckBuffers());
  for (size_t i = 0; i < program_.kernels.size(); ++i) {
    kernel_ = static_cast<int>(i);
    if (!program_.kernels[i].body) return Error("empty kernel");
    device_ = IsDeviceKernel(program_.kernels[i]);
    RETURN_IF_ERROR(CheckStmt(program_.kernels[i].body));
  }
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    if (program_.buffers[i].scope == Scope::kOutput && !written_[i]) {
      return absl::InternalError(absl::StrCat(
          "output ", program_.buffers[i].name, " is never written"));
    }
  }
  return absl::OkStatus();
}

absl::Status Verifier::Error(const std::string& what) const {
  std::string where;
  if (kernel_ >= 0) {
    where = absl::StrCat("kernel ", program_.kernels[kernel_].name, ": ");
  }
  if (stmt_ != nullptr) {
    absl::StrAppend(&where, "'", ToString(program_, *stmt_), "': ");
  }
  return absl::InternalError(absl::StrCat("loops: ", where, what));
}

absl::Status Verifier::CheckBuffers() {
  if (program_.threads < 1) {
    return Error(absl::StrCat("threads is ", program_.threads));
  }
  int rank = 0;  // inputs, outputs, the rest
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const Buffer& buffer = program_.buffers[i];
    const int r = buffer.scope == Scope::kInput    ? 0
                  : buffer.scope == Scope::kOutput ? 1
                                                   : 2;
    if (r < rank) {
      return Error(absl::StrCat("buffer ", buffer.name,
                                " stands after buffers of a later scope"));
    }
    rank = r;
    if (buffer.elements < 1) {
      return Error(absl::StrCat("buffer ", buffer.name, " has ",
                                buffer.elements, " elements"));
    }
    if (buffer.dtype == DType::kBool) {
      return Error(absl::StrCat("buffer ", buffer.name, " holds bool"));
    }
    if (buffer.per_thread && buffer.scope != Scope::kWorkspace) {
      return Error(absl::StrCat("buffer ", buffer.name,
                                " is per thread but no workspace"));
    }
    const int64_t line = 8 * SwizzleChunk(buffer);
    if (buffer.swizzle != 0 &&
        (buffer.scope != Scope::kLocal || buffer.elements % line != 0 ||
         buffer.swizzle < line ||
         (buffer.swizzle & (buffer.swizzle - 1)) != 0)) {
      return Error(absl::StrCat("buffer ", buffer.name, " of ", buffer.elements,
                                " elements is swizzled by ", buffer.swizzle));
    }
    if (buffer.scope == Scope::kInput) written_[i] = true;
  }
  return absl::OkStatus();
}

absl::Status Verifier::CheckStmt(const StmtPtr& stmt) {
  const Stmt* const outer = stmt_;
  if (!stmt) return Error("null statement");
  stmt_ = stmt.get();
  absl::Status status;
  switch (stmt->kind) {
    case Stmt::Kind::kBlock:
      for (const StmtPtr& child : stmt->body) {
        status = CheckStmt(child);
        if (!status.ok()) break;
      }
      break;
    case Stmt::Kind::kFor:
      status = CheckFor(*stmt);
      break;
    case Stmt::Kind::kStore:
      status = CheckStore(*stmt);
      break;
    case Stmt::Kind::kIf:
      status = CheckIf(*stmt);
      break;
    case Stmt::Kind::kLet:
      status = CheckLet(*stmt);
      break;
    case Stmt::Kind::kBarrier:
      status = CheckMeeting("only device kernels have barriers");
      break;
    case Stmt::Kind::kIntrinsic:
      status = CheckIntrinsic(*stmt);
      break;
  }
  stmt_ = outer;
  return status;
}

absl::Status Verifier::CheckIf(const Stmt& stmt) {
  if (!device_) return Error("only device kernels have guarded statements");
  if (stmt.body.size() != 1) return Error("a guarded statement has one body");
  for (const Guard& guard : stmt.guards) {
    RETURN_IF_ERROR(CheckForm(guard.form));
  }
  const size_t outer = guards_.size();
  guards_.insert(guards_.end(), stmt.guards.begin(), stmt.guards.end());
  RETURN_IF_ERROR(CheckStmt(stmt.body[0]));
  guards_.resize(outer);
  return absl::OkStatus();
}

absl::Status Verifier::CheckLet(const Stmt& stmt) {
  if (!device_) return Error("only device kernels have lets");
  if (loops_.back().kind == LoopKind::kVector) {
    return Error("inside a vector loop");
  }
  RETURN_IF_ERROR(CheckNewVar(stmt));
  if (stmt.extent < 1 || stmt.divisor < 1 || stmt.body.size() != 1) {
    return Error("extent and divisor must be positive, and the body one");
  }
  RETURN_IF_ERROR(CheckForm(stmt.offset));
  const std::optional<Range> range =
      GuardedRange(stmt.offset, guards_, [&](int var) { return Extent(var); });
  if (range && range->min < 0) {
    return Error(absl::StrCat("divides a number that may be ", range->min));
  }
  EnclosingLoop let{stmt.var, stmt.extent, LoopKind::kSerial, true, {}};
  for (const Affine::Term& term : stmt.offset.terms()) {
    const EnclosingLoop& named = *Find(term.var);
    let.expanded = let.expanded && named.expanded;
    if (named.of.empty()) let.of.push_back(term.var);
    let.of.insert(let.of.end(), named.of.begin(), named.of.end());
  }
  loops_.push_back(std::move(let));
  RETURN_IF_ERROR(CheckStmt(stmt.body[0]));
  loops_.pop_back();
  return absl::OkStatus();
}

// Where all threads of a group come by together.
absl::Status Verifier::CheckMeeting(const std::string& on_processors) const {
  if (!device_) return Error(on_processors);
  if (loops_.back().kind == LoopKind::kVector) {
    return Error("inside a vector loop");
  }
  for (const Guard& guard : guards_) {
    for (const Affine::Term& term : guard.form.terms()) {
      const EnclosingLoop& named = *Find(term.var);
      bool differs = named.kind == LoopKind::kThread;
      for (const int of : named.of) {
        differs = differs || Find(of)->kind == LoopKind::kThread;
      }
      if (differs) {
        return Error(absl::StrCat("under a guard on v", term.var,
                                  ", which differs between threads"));
      }
    }
  }
  return absl::OkStatus();
}

// Group loops, then thread loops, then everything else.
absl::Status Verifier::CheckDeviceLoop(const Stmt& stmt) const {
  constexpr int kMaxDimensions = 3;
  const bool top = loops_.empty()
                       ? program_.kernels[kernel_].body.get() == &stmt
                       : top_ == &stmt;
  if (!top) {
    return Error("a group or thread loop that is not outermost");
  }
  int same = 0;
  for (const EnclosingLoop& loop : loops_) same += loop.kind == stmt.loop;
  if (same == kMaxDimensions) {
    return Error("more than three group loops, or thread loops");
  }
  if (stmt.loop == LoopKind::kGroup && same < static_cast<int>(loops_.size())) {
    return Error("a group loop inside a thread loop");
  }
  return absl::OkStatus();
}

absl::Status Verifier::CheckNewVar(const Stmt& stmt) {
  if (stmt.var < 0 || stmt.var >= program_.num_vars) {
    return Error(absl::StrCat("loop id ", stmt.var, " is not in [0, ",
                              program_.num_vars, ")"));
  }
  if (!seen_vars_.insert(stmt.var).second) {
    return Error(absl::StrCat("loop id ", stmt.var, " is used twice"));
  }
  return absl::OkStatus();
}

absl::Status Verifier::CheckFor(const Stmt& stmt) {
  RETURN_IF_ERROR(CheckNewVar(stmt));
  if (stmt.extent < 1 || stmt.unroll < 1) {
    return Error("extent and unroll must be positive");
  }
  if (stmt.unroll != 1 && stmt.loop != LoopKind::kSerial) {
    return Error("only a serial loop unrolls partly");
  }
  if (stmt.body.size() != 1) return Error("a loop has one body");
  if (!loops_.empty() && loops_.back().kind == LoopKind::kVector) {
    return Error("a loop inside a vector loop");
  }
  if (stmt.loop == LoopKind::kParallel && !loops_.empty()) {
    return Error("a parallel loop inside another loop");
  }
  if (stmt.loop == LoopKind::kGroup || stmt.loop == LoopKind::kThread) {
    RETURN_IF_ERROR(CheckDeviceLoop(stmt));
    top_ = stmt.body[0].get();
  }
  loops_.push_back({stmt.var,
                    stmt.extent,
                    stmt.loop,
                    stmt.loop == LoopKind::kUnrolled ||
                        stmt.loop == LoopKind::kVector ||
                        stmt.unroll >= stmt.extent,
                    {}});
  RETURN_IF_ERROR(CheckStmt(stmt.body[0]));
  loops_.pop_back();
  return absl::OkStatus();
}

absl::Status Verifier::CheckStore(const Stmt& stmt) {
  if (!stmt.value) return Error("no value");
  // Before the store counts as a write: `a[i] = a[i] + 1` reads first.
  RETURN_IF_ERROR(CheckValue(*stmt.value));
  if (stmt.buffer < 0 ||
      stmt.buffer >= static_cast<int>(program_.buffers.size())) {
    return Error(absl::StrCat("no buffer ", stmt.buffer));
  }
  const Buffer& buffer = program_.buffers[stmt.buffer];
  if (buffer.scope == Scope::kInput) return Error("stores to an input");
  if (buffer.scope == Scope::kFragment) return Error("stores to a fragment");
  if (stmt.value->dtype != buffer.dtype) {
    return Error(absl::StrCat("a ", std::string(DTypeName(stmt.value->dtype)),
                              " stored as ",
                              std::string(DTypeName(buffer.dtype))));
  }
  RETURN_IF_ERROR(CheckElement(stmt.buffer, stmt.offset, {}));
  if (stmt.value->kind == Value::Kind::kProducts) {
    RETURN_IF_ERROR(CheckProducts(stmt));
  }
  RETURN_IF_ERROR(CheckRace(stmt.offset, buffer));
  if (stmt.accumulate != Reduction::kNone && !written_[stmt.buffer]) {
    return Error(absl::StrCat("accumulates into ", buffer.name,
                              " before anything set it"));
  }
  if (stmt.streaming && (stmt.accumulate != Reduction::kNone ||
                         buffer.scope == Scope::kRegister)) {
    return Error("a streaming store accumulates or stays in registers");
  }
  written_[stmt.buffer] = true;
  return absl::OkStatus();
}

// A block of products: where it may stand, its types, and the elements that
// follow the first ones of its three operands.
absl::Status Verifier::CheckProducts(const Stmt& stmt) {
  const Value& value = *stmt.value;
  const ProductBlock& block = value.block;
  if (stmt.accumulate != Reduction::kSum) {
    return Error("products are added, not stored");
  }
  if (!loops_.empty() && loops_.back().kind == LoopKind::kVector) {
    return Error("products in a vector loop");
  }
  if (block.rows < 1 || block.cols < 1 || block.depth < 1) {
    return Error("an empty block of products");
  }
  for (const ValuePtr& operand : value.operands) {
    if (operand->kind != Value::Kind::kLoad || !operand->guards.empty()) {
      return Error("products of something other than plain loads");
    }
  }
  const std::string wrong = TypeError(value);
  if (!wrong.empty()) return Error(wrong);
  RETURN_IF_ERROR(CheckElement(
      stmt.buffer, stmt.offset + (block.rows * block.cols - 1), {}));
  const int64_t counts[] = {block.rows * block.depth, block.cols * block.depth};
  for (int i : {0, 1}) {
    const Value& load = *value.operands[i];
    RETURN_IF_ERROR(
        CheckElement(load.buffer, load.offset + (counts[i] - 1), {}));
  }
  return absl::OkStatus();
}

absl::Status Verify(const Program& program) { return Verifier(program).Run(); }

}  // namespace regatta::loop
