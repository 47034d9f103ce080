// The verifier of lowered loops. One walk in program order carries the loops
// around the current statement and what has been written so far.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/lower/intrinsics.h"
#include "compiler/lower/loop_ir.h"
#include "compiler/lower/loop_range.h"
#include "compiler/lower/value_types.h"

namespace regatta::loop {
namespace {

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program),
        written_(program.buffers.size(), false),
        home_(program.buffers.size()) {}

  absl::Status Run() {
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

 private:
  struct EnclosingLoop {
    int var;
    int64_t extent;
    LoopKind kind;
    bool expanded;  // each iteration is its own code
  };

  // Where a register, local or per-thread buffer lives.
  struct Home {
    int kernel;
    int parallel_var;  // -1 outside parallel loops
    friend bool operator==(const Home&, const Home&) = default;
  };

  absl::Status Error(const std::string& what) const {
    std::string where;
    if (kernel_ >= 0) {
      where = absl::StrCat("kernel ", program_.kernels[kernel_].name, ": ");
    }
    if (stmt_ != nullptr) {
      absl::StrAppend(&where, "'", ToString(program_, *stmt_), "': ");
    }
    return absl::InternalError(absl::StrCat("loops: ", where, what));
  }

  absl::Status CheckBuffers() {
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
      if (buffer.scope == Scope::kInput) written_[i] = true;
    }
    return absl::OkStatus();
  }

  absl::Status CheckStmt(const StmtPtr& stmt) {
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
      case Stmt::Kind::kBarrier:
        status = CheckBarrier();
        break;
      case Stmt::Kind::kIntrinsic:
        status = CheckIntrinsic(*stmt);
        break;
    }
    stmt_ = outer;
    return status;
  }

  absl::Status CheckIf(const Stmt& stmt) {
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

  absl::Status CheckBarrier() const {
    if (!device_) return Error("only device kernels have barriers");
    if (loops_.back().kind == LoopKind::kVector) {
      return Error("inside a vector loop");
    }
    for (const Guard& guard : guards_) {
      for (const Affine::Term& term : guard.form.terms()) {
        if (Find(term.var)->kind == LoopKind::kThread) {
          return Error(absl::StrCat("under a guard on v", term.var,
                                    ", which differs between threads"));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckIntrinsic(const Stmt& stmt) {
    const Intrinsic* const intrinsic = FindIntrinsic(stmt.intrinsic);
    if (intrinsic == nullptr) return Error("no such intrinsic");
    if (!device_) return Error("only device kernels have intrinsics");
    if (loops_.back().kind == LoopKind::kVector) {
      return Error("inside a vector loop");
    }
    if (stmt.operands.size() != intrinsic->operands.size()) {
      return Error(
          absl::StrCat("takes ", intrinsic->operands.size(), " operands"));
    }
    std::optional<DType> dtype;
    for (size_t i = 0; i < stmt.operands.size(); ++i) {
      const IntrinsicOperand& operand = stmt.operands[i];
      const IntrinsicOperandRule& rule = intrinsic->operands[i];
      const bool number = rule.use == IntrinsicOperandRule::Use::kNumber;
      if (number != (operand.buffer < 0)) {
        return Error(absl::StrCat("operand ", i, " is ",
                                  number ? "no number" : "no element"));
      }
      if (number) continue;
      RETURN_IF_ERROR(CheckIntrinsicElement(operand, rule));
      const DType of = program_.buffers[operand.buffer].dtype;
      if (dtype.value_or(of) != of) return Error("elements of unequal types");
      dtype = of;
    }
    return absl::OkStatus();
  }

  absl::Status CheckIntrinsicElement(const IntrinsicOperand& operand,
                                     const IntrinsicOperandRule& rule) {
    if (operand.buffer >= static_cast<int>(program_.buffers.size())) {
      return Error(absl::StrCat("no buffer ", operand.buffer));
    }
    const Buffer& buffer = program_.buffers[operand.buffer];
    const bool local = buffer.scope == Scope::kLocal;
    if (local != rule.local || buffer.scope == Scope::kRegister) {
      return Error(
          absl::StrCat(buffer.name, " is in memory of the wrong kind"));
    }
    const int64_t count = rule.bytes / DTypeBytes(buffer.dtype);
    RETURN_IF_ERROR(CheckElement(operand.buffer, operand.offset, {}));
    RETURN_IF_ERROR(
        CheckElement(operand.buffer, operand.offset + (count - 1), {}));
    bool aligned = operand.offset.constant() % count == 0;
    for (const Affine::Term& term : operand.offset.terms()) {
      aligned = aligned && term.coeff % count == 0;
    }
    if (!aligned) {
      return Error(absl::StrCat("the offset of ", buffer.name,
                                " is no multiple of ", count));
    }
    if (rule.use == IntrinsicOperandRule::Use::kReads) {
      return written_[operand.buffer]
                 ? absl::OkStatus()
                 : Error(absl::StrCat("reads ", buffer.name,
                                      " before anything wrote it"));
    }
    if (buffer.scope == Scope::kInput) return Error("stores to an input");
    RETURN_IF_ERROR(CheckRace(operand.offset, buffer));
    written_[operand.buffer] = true;
    return absl::OkStatus();
  }

  // Group loops, then thread loops, then everything else.
  absl::Status CheckDeviceLoop(const Stmt& stmt) const {
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
    if (stmt.loop == LoopKind::kGroup &&
        same < static_cast<int>(loops_.size())) {
      return Error("a group loop inside a thread loop");
    }
    return absl::OkStatus();
  }

  absl::Status CheckFor(const Stmt& stmt) {
    if (stmt.var < 0 || stmt.var >= program_.num_vars) {
      return Error(absl::StrCat("loop id ", stmt.var, " is not in [0, ",
                                program_.num_vars, ")"));
    }
    if (!seen_vars_.insert(stmt.var).second) {
      return Error(absl::StrCat("loop id ", stmt.var, " is used twice"));
    }
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
    loops_.push_back({stmt.var, stmt.extent, stmt.loop,
                      stmt.loop == LoopKind::kUnrolled ||
                          stmt.loop == LoopKind::kVector ||
                          stmt.unroll >= stmt.extent});
    RETURN_IF_ERROR(CheckStmt(stmt.body[0]));
    loops_.pop_back();
    return absl::OkStatus();
  }

  absl::Status CheckStore(const Stmt& stmt) {
    if (!stmt.value) return Error("no value");
    // Before the store counts as a write: `a[i] = a[i] + 1` reads first.
    RETURN_IF_ERROR(CheckValue(*stmt.value));
    if (stmt.buffer < 0 ||
        stmt.buffer >= static_cast<int>(program_.buffers.size())) {
      return Error(absl::StrCat("no buffer ", stmt.buffer));
    }
    const Buffer& buffer = program_.buffers[stmt.buffer];
    if (buffer.scope == Scope::kInput) return Error("stores to an input");
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
  absl::Status CheckProducts(const Stmt& stmt) {
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
    const int64_t counts[] = {block.rows * block.depth,
                              block.cols * block.depth};
    for (int i : {0, 1}) {
      const Value& load = *value.operands[i];
      RETURN_IF_ERROR(
          CheckElement(load.buffer, load.offset + (counts[i] - 1), {}));
    }
    return absl::OkStatus();
  }

  absl::Status CheckRace(const Affine& offset, const Buffer& buffer) const {
    if (buffer.scope == Scope::kRegister || buffer.per_thread) {
      return absl::OkStatus();
    }
    for (const EnclosingLoop& loop : loops_) {
      const bool side_by_side =
          loop.kind == LoopKind::kParallel || loop.kind == LoopKind::kThread ||
          (loop.kind == LoopKind::kGroup && buffer.scope != Scope::kLocal);
      if (side_by_side && loop.extent > 1 && offset.Coeff(loop.var) == 0 &&
          !LeavesOne(loop.var)) {
        return Error(absl::StrCat("every iteration of the ",
                                  loop.kind == LoopKind::kParallel ? "parallel"
                                  : loop.kind == LoopKind::kThread ? "thread"
                                                                   : "group",
                                  " loop stores there"));
      }
    }
    return absl::OkStatus();
  }

  // Whether the guards around this place let one iteration of a loop through.
  bool LeavesOne(int var) const {
    const std::optional<Range> range = GuardedRange(
        Affine::Var(var), guards_, [&](int v) { return Extent(v); });
    return !range || range->min == range->max;
  }

  // Vars in scope, offset in bounds, the buffer's own rules.
  absl::Status CheckElement(int id, const Affine& offset,
                            const std::vector<Guard>& guards) {
    const Buffer& buffer = program_.buffers[id];
    RETURN_IF_ERROR(CheckForm(offset));
    for (const Guard& guard : guards) RETURN_IF_ERROR(CheckForm(guard.form));
    std::vector<Guard> all = guards_;
    all.insert(all.end(), guards.begin(), guards.end());
    const std::optional<Range> range =
        GuardedRange(offset, all, [&](int var) { return Extent(var); });
    if (range && (range->min < 0 || range->max >= buffer.elements)) {
      return Error(absl::StrCat("offset of ", buffer.name, " spans [",
                                range->min, ", ", range->max, "] of ",
                                buffer.elements, " elements"));
    }
    if (buffer.scope == Scope::kRegister) {
      for (const Affine::Term& term : offset.terms()) {
        const EnclosingLoop* const found = Find(term.var);
        if (!found->expanded) {
          return Error(absl::StrCat("register buffer ", buffer.name,
                                    " indexed by v", term.var,
                                    ", which is not unrolled"));
        }
      }
    }
    if (buffer.scope == Scope::kLocal && !device_) {
      return Error(absl::StrCat("local buffer ", buffer.name,
                                " in a kernel without groups"));
    }
    if (buffer.scope == Scope::kRegister || buffer.scope == Scope::kLocal ||
        buffer.per_thread) {
      const Home here{kernel_,
                      !loops_.empty() && loops_[0].kind == LoopKind::kParallel
                          ? loops_[0].var
                          : -1};
      if (home_[id] && !(*home_[id] == here)) {
        return Error(absl::StrCat("buffer ", buffer.name,
                                  " is private to another loop nest"));
      }
      home_[id] = here;
    }
    return absl::OkStatus();
  }

  absl::Status CheckForm(const Affine& form) const {
    for (const Affine::Term& term : form.terms()) {
      if (Find(term.var) == nullptr) {
        return Error(absl::StrCat("v", term.var, " is not in scope"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckValue(const Value& value) {
    for (const ValuePtr& operand : value.operands) {
      if (!operand) return Error("null operand");
      RETURN_IF_ERROR(CheckValue(*operand));
    }
    switch (value.kind) {
      case Value::Kind::kConst:
        return absl::OkStatus();
      case Value::Kind::kIndex:
        return CheckForm(value.offset);
      case Value::Kind::kLoad:
        return CheckLoad(value);
      case Value::Kind::kUnary:
      case Value::Kind::kCast:
      case Value::Kind::kBinary:
      case Value::Kind::kSelect:
        return CheckTypes(value);
      case Value::Kind::kProducts:
        if (&value != stmt_->value.get() || value.operands.size() != 2) {
          return Error("products inside another value");
        }
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status CheckLoad(const Value& value) {
    if (value.buffer < 0 ||
        value.buffer >= static_cast<int>(program_.buffers.size())) {
      return Error(absl::StrCat("no buffer ", value.buffer));
    }
    const Buffer& buffer = program_.buffers[value.buffer];
    if (value.dtype != buffer.dtype) {
      return Error(absl::StrCat("loads ", buffer.name, " as ",
                                std::string(DTypeName(value.dtype))));
    }
    if (!written_[value.buffer]) {
      return Error(
          absl::StrCat("reads ", buffer.name, " before anything wrote it"));
    }
    return CheckElement(value.buffer, value.offset, value.guards);
  }

  absl::Status CheckTypes(const Value& value) const {
    const std::string wrong = TypeError(value);
    if (wrong.empty()) return absl::OkStatus();
    return Error(absl::StrCat(wrong, " in ", ToString(program_, value)));
  }

  const EnclosingLoop* Find(int var) const {
    const auto it =
        std::find_if(loops_.begin(), loops_.end(),
                     [&](const EnclosingLoop& l) { return l.var == var; });
    return it == loops_.end() ? nullptr : &*it;
  }
  int64_t Extent(int var) const { return Find(var)->extent; }

  const Program& program_;
  int kernel_ = -1;
  bool device_ = false;  // kernel_ is a device kernel
  const Stmt* stmt_ = nullptr;
  const Stmt* top_ = nullptr;         // body of the last group or thread loop
  std::vector<EnclosingLoop> loops_;  // outermost first
  std::vector<Guard> guards_;         // of the kIfs around
  std::set<int> seen_vars_;
  std::vector<bool> written_;              // per buffer
  std::vector<std::optional<Home>> home_;  // per buffer
};

}  // namespace

absl::Status Verify(const Program& program) { return Verifier(program).Run(); }

}  // namespace regatta::loop
