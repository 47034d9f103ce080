#include "compiler/lower/loop_ir.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "compiler/lower/intrinsics.h"

namespace regatta::loop {
namespace {

std::shared_ptr<Value> NewValue(Value::Kind kind, DType dtype) {
  auto value = std::make_shared<Value>();
  value->kind = kind;
  value->dtype = dtype;
  return value;
}

bool IsComparison(BinaryOp op) {
  return op == BinaryOp::kLess || op == BinaryOp::kLessEqual ||
         op == BinaryOp::kEqual;
}

}  // namespace

ValuePtr Const(double value, DType dtype) {
  auto node = NewValue(Value::Kind::kConst, dtype);
  node->constant = value;
  return node;
}

ValuePtr Index(Affine form, DType dtype) {
  auto node = NewValue(Value::Kind::kIndex, dtype);
  node->offset = std::move(form);
  return node;
}

ValuePtr Load(const Buffer& buffer, int id, Affine offset,
              std::vector<Guard> guards, double pad_value) {
  auto node = NewValue(Value::Kind::kLoad, buffer.dtype);
  node->buffer = id;
  node->offset = std::move(offset);
  node->guards = std::move(guards);
  node->constant = pad_value;
  return node;
}

ValuePtr Unary(UnaryOp op, ValuePtr a) {
  auto node = NewValue(Value::Kind::kUnary, a->dtype);
  node->unary = op;
  node->operands = {std::move(a)};
  return node;
}

ValuePtr Binary(BinaryOp op, ValuePtr a, ValuePtr b) {
  auto node = NewValue(Value::Kind::kBinary,
                       IsComparison(op) ? DType::kBool : a->dtype);
  node->binary = op;
  node->operands = {std::move(a), std::move(b)};
  return node;
}

ValuePtr Select(ValuePtr condition, ValuePtr a, ValuePtr b) {
  auto node = NewValue(Value::Kind::kSelect, a->dtype);
  node->operands = {std::move(condition), std::move(a), std::move(b)};
  return node;
}

ValuePtr Cast(ValuePtr a, DType dtype) {
  if (a->dtype == dtype) return a;
  auto node = NewValue(Value::Kind::kCast, dtype);
  node->operands = {std::move(a)};
  return node;
}

ValuePtr Products(ValuePtr a, ValuePtr b, ProductBlock block) {
  auto node = NewValue(Value::Kind::kProducts,
                       IsFloat(a->dtype) ? DType::kF32 : DType::kI32);
  node->block = block;
  node->operands = {std::move(a), std::move(b)};
  return node;
}

StmtPtr For(int var, int64_t extent, LoopKind kind, StmtPtr body,
            int64_t unroll) {
  auto stmt = std::make_shared<Stmt>();
  stmt->kind = Stmt::Kind::kFor;
  stmt->var = var;
  stmt->extent = extent;
  stmt->loop = kind;
  stmt->unroll = unroll;
  stmt->body = {std::move(body)};
  return stmt;
}

StmtPtr Store(int buffer, Affine offset, ValuePtr value, Reduction accumulate,
              bool streaming) {
  auto stmt = std::make_shared<Stmt>();
  stmt->kind = Stmt::Kind::kStore;
  stmt->buffer = buffer;
  stmt->offset = std::move(offset);
  stmt->value = std::move(value);
  stmt->accumulate = accumulate;
  stmt->streaming = streaming;
  return stmt;
}

StmtPtr Block(std::vector<StmtPtr> body) {
  if (body.size() == 1) return std::move(body[0]);
  auto stmt = std::make_shared<Stmt>();
  stmt->kind = Stmt::Kind::kBlock;
  stmt->body = std::move(body);
  return stmt;
}

StmtPtr If(std::vector<Guard> guards, StmtPtr body) {
  auto stmt = std::make_shared<Stmt>();
  stmt->kind = Stmt::Kind::kIf;
  stmt->guards = std::move(guards);
  stmt->body = {std::move(body)};
  return stmt;
}

StmtPtr Let(int var, int64_t extent, Affine form, int64_t divisor,
            StmtPtr body) {
  auto stmt = std::make_shared<Stmt>();
  stmt->kind = Stmt::Kind::kLet;
  stmt->var = var;
  stmt->extent = extent;
  stmt->offset = std::move(form);
  stmt->divisor = divisor;
  stmt->body = {std::move(body)};
  return stmt;
}

StmtPtr Barrier() {
  auto stmt = std::make_shared<Stmt>();
  stmt->kind = Stmt::Kind::kBarrier;
  return stmt;
}

StmtPtr CallIntrinsic(std::string_view name,
                      std::vector<IntrinsicOperand> operands) {
  auto stmt = std::make_shared<Stmt>();
  stmt->kind = Stmt::Kind::kIntrinsic;
  stmt->intrinsic = std::string(name);
  stmt->operands = std::move(operands);
  return stmt;
}

int64_t SwizzleChunk(const Buffer& buffer) {
  return 16 / DTypeBytes(buffer.dtype);
}

int64_t SwizzledElement(const Buffer& buffer, int64_t offset) {
  if (buffer.swizzle == 0) return offset;
  return offset ^ (offset / buffer.swizzle % 8 * SwizzleChunk(buffer));
}

bool IsDeviceKernel(const Kernel& kernel) {
  return kernel.body && kernel.body->kind == Stmt::Kind::kFor &&
         (kernel.body->loop == LoopKind::kGroup ||
          kernel.body->loop == LoopKind::kThread);
}

namespace {

void VisitLoads(const Value& value,
                const std::function<void(int, bool)>& visit) {
  if (value.kind == Value::Kind::kLoad) visit(value.buffer, false);
  for (const ValuePtr& operand : value.operands) VisitLoads(*operand, visit);
}

}  // namespace

void VisitBuffers(const Stmt& stmt,
                  const std::function<void(int, bool)>& visit) {
  if (stmt.kind == Stmt::Kind::kStore) {
    visit(stmt.buffer, true);
    VisitLoads(*stmt.value, visit);
  }
  if (stmt.kind == Stmt::Kind::kIntrinsic) {
    const Intrinsic* const intrinsic = FindIntrinsic(stmt.intrinsic);
    for (size_t i = 0; i < stmt.operands.size(); ++i) {
      if (stmt.operands[i].buffer < 0) continue;
      using Use = IntrinsicOperandRule::Use;
      const Use use = intrinsic != nullptr && i < intrinsic->operands.size()
                          ? intrinsic->operands[i].use
                          : Use::kReads;
      if (use != Use::kWrites) visit(stmt.operands[i].buffer, false);
      if (use != Use::kReads) visit(stmt.operands[i].buffer, true);
    }
  }
  for (const StmtPtr& child : stmt.body) VisitBuffers(*child, visit);
}

double Identity(Reduction reduction, DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (reduction) {
    case Reduction::kNone:
    case Reduction::kSum:
      return 0;
    case Reduction::kProd:
      return 1;
    case Reduction::kMax:
    case Reduction::kMin:
      break;
  }
  const bool max = reduction == Reduction::kMax;
  if (IsFloat(dtype)) return max ? -infinity : infinity;
  if (dtype == DType::kI8) return max ? -128 : 127;
  return max ? std::numeric_limits<int32_t>::min()
             : std::numeric_limits<int32_t>::max();
}

namespace {

std::string VarName(int var) { return absl::StrCat("v", var); }

std::string ScopeName(const Buffer& buffer) {
  switch (buffer.scope) {
    case Scope::kInput:
      return "input";
    case Scope::kOutput:
      return "output";
    case Scope::kWorkspace:
      return buffer.per_thread ? "workspace per thread" : "workspace";
    case Scope::kRegister:
      return "register";
    case Scope::kLocal:
      return buffer.swizzle == 0
                 ? "local"
                 : absl::StrCat("local, swizzled by ", buffer.swizzle);
    case Scope::kFragment:
      return "fragment";
  }
  return "?";
}

std::string UnaryName(UnaryOp op) {
  switch (op) {
    case UnaryOp::kNeg:
      return "-";
    case UnaryOp::kAbs:
      return "abs";
    case UnaryOp::kExp:
      return "exp";
    case UnaryOp::kLog:
      return "log";
    case UnaryOp::kSqrt:
      return "sqrt";
    case UnaryOp::kRsqrt:
      return "rsqrt";
    case UnaryOp::kTanh:
      return "tanh";
    case UnaryOp::kSigmoid:
      return "sigmoid";
    case UnaryOp::kErf:
      return "erf";
    case UnaryOp::kFloor:
      return "floor";
    case UnaryOp::kRound:
      return "round";
  }
  return "?";
}

std::string BinaryText(BinaryOp op, const std::string& a,
                       const std::string& b) {
  const auto infix = [&](std::string_view symbol) {
    return absl::StrCat("(", a, " ", std::string(symbol), " ", b, ")");
  };
  switch (op) {
    case BinaryOp::kAdd:
      return infix("+");
    case BinaryOp::kSub:
      return infix("-");
    case BinaryOp::kMul:
      return infix("*");
    case BinaryOp::kDiv:
      return infix("/");
    case BinaryOp::kMax:
      return absl::StrCat("max(", a, ", ", b, ")");
    case BinaryOp::kMin:
      return absl::StrCat("min(", a, ", ", b, ")");
    case BinaryOp::kLess:
      return infix("<");
    case BinaryOp::kLessEqual:
      return infix("<=");
    case BinaryOp::kEqual:
      return infix("==");
  }
  return "?";
}

std::string ReductionAssign(Reduction reduction) {
  switch (reduction) {
    case Reduction::kNone:
      return "=";
    case Reduction::kSum:
      return "+=";
    case Reduction::kProd:
      return "*=";
    case Reduction::kMax:
      return "max=";
    case Reduction::kMin:
      return "min=";
  }
  return "?";
}

// A malformed program must still print: it is what a message quotes.
std::string BufferName(const Program& program, int id) {
  if (id < 0 || id >= static_cast<int>(program.buffers.size())) {
    return absl::StrCat("?", id);
  }
  return program.buffers[id].name;
}

std::string Element(const Program& program, int buffer, const Affine& offset) {
  return absl::StrCat(BufferName(program, buffer), "[",
                      offset.ToString(VarName), "]");
}

std::string GuardText(const std::vector<Guard>& guards) {
  return absl::StrJoin(guards, ", ", [](std::string* out, const Guard& guard) {
    absl::StrAppend(out, "0 <= ", guard.form.ToString(VarName), " < ",
                    guard.bound);
  });
}

std::string TypeName(DType type) { return std::string(DTypeName(type)); }

std::string LoopText(const Stmt& stmt) {
  std::string text;
  switch (stmt.loop) {
    case LoopKind::kSerial:
      text = "for";
      break;
    case LoopKind::kParallel:
      text = "parallel";
      break;
    case LoopKind::kUnrolled:
      text = "unrolled";
      break;
    case LoopKind::kVector:
      text = "vector";
      break;
    case LoopKind::kGroup:
      text = "group";
      break;
    case LoopKind::kThread:
      text = "thread";
      break;
  }
  absl::StrAppend(&text, " ", VarName(stmt.var), " < ", stmt.extent);
  if (stmt.unroll != 1) absl::StrAppend(&text, " unroll ", stmt.unroll);
  return text;
}

void AppendStmt(const Program& program, const Stmt& stmt, int depth,
                std::string& out) {
  const std::string indent(2 * depth, ' ');
  if (stmt.kind == Stmt::Kind::kBlock) {
    for (const StmtPtr& child : stmt.body) {
      AppendStmt(program, *child, depth, out);
    }
    return;
  }
  absl::StrAppend(&out, indent, ToString(program, stmt), "\n");
  for (const StmtPtr& child : stmt.body) {
    AppendStmt(program, *child, depth + 1, out);
  }
}

}  // namespace

std::string ToString(const Program& program, const Value& value) {
  std::vector<std::string> operands;
  for (const ValuePtr& operand : value.operands) {
    operands.push_back(ToString(program, *operand));
  }
  switch (value.kind) {
    case Value::Kind::kConst:
      return absl::StrCat(value.constant, ":", TypeName(value.dtype));
    case Value::Kind::kIndex:
      return absl::StrCat(TypeName(value.dtype), "(",
                          value.offset.ToString(VarName), ")");
    case Value::Kind::kLoad: {
      std::string text = Element(program, value.buffer, value.offset);
      if (value.guards.empty()) return text;
      return absl::StrCat("{", text, " if ", GuardText(value.guards), " else ",
                          value.constant, "}");
    }
    case Value::Kind::kUnary:
      return absl::StrCat(UnaryName(value.unary), "(", operands.at(0), ")");
    case Value::Kind::kBinary:
      return BinaryText(value.binary, operands.at(0), operands.at(1));
    case Value::Kind::kSelect:
      return absl::StrCat("select(", absl::StrJoin(operands, ", "), ")");
    case Value::Kind::kCast:
      return absl::StrCat(TypeName(value.dtype), "(", operands.at(0), ")");
    case Value::Kind::kProducts:
      return absl::StrCat("products ", value.block.rows, "x", value.block.cols,
                          "x", value.block.depth, "(",
                          value.block.unsigned_a ? "unsigned " : "",
                          absl::StrJoin(operands, ", "), ")");
  }
  return "?";
}

std::string ToString(const Program& program, const Stmt& stmt) {
  switch (stmt.kind) {
    case Stmt::Kind::kFor:
      return LoopText(stmt);
    case Stmt::Kind::kStore:
      return absl::StrCat(Element(program, stmt.buffer, stmt.offset), " ",
                          ReductionAssign(stmt.accumulate), " ",
                          stmt.value ? ToString(program, *stmt.value) : "?",
                          stmt.streaming ? " (streaming)" : "");
    case Stmt::Kind::kBlock:
      return absl::StrCat("block of ", stmt.body.size());
    case Stmt::Kind::kIf:
      return absl::StrCat("if ", GuardText(stmt.guards));
    case Stmt::Kind::kLet:
      return absl::StrCat("let ", VarName(stmt.var), " = (",
                          stmt.offset.ToString(VarName), ") / ", stmt.divisor,
                          " % ", stmt.extent);
    case Stmt::Kind::kBarrier:
      return "barrier";
    case Stmt::Kind::kIntrinsic:
      return absl::StrCat(
          stmt.intrinsic, "(",
          absl::StrJoin(stmt.operands, ", ",
                        [&](std::string* out, const IntrinsicOperand& o) {
                          absl::StrAppend(
                              out, o.buffer < 0
                                       ? absl::StrCat(o.number)
                                       : Element(program, o.buffer, o.offset));
                          if (o.guards.empty()) return;
                          absl::StrAppend(out, " if ", GuardText(o.guards));
                        }),
          ")");
  }
  return "?";
}

std::string ToString(const Program& program) {
  std::string out = absl::StrCat("threads ", program.threads, "\n");
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    absl::StrAppend(&out, "buffer ", buffer.name, ": ", TypeName(buffer.dtype),
                    "[", buffer.elements, "] ", ScopeName(buffer), "\n");
  }
  for (const Kernel& kernel : program.kernels) {
    absl::StrAppend(&out, "kernel ", kernel.name, "\n");
    if (kernel.body) AppendStmt(program, *kernel.body, 1, out);
  }
  return out;
}

}  // namespace regatta::loop
