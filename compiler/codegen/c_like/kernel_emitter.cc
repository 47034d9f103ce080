// Statements and loops. Loads and stores are in kernel_memory.cc, arithmetic in
// kernel_values.cc.
#include "compiler/codegen/c_like/kernel_emitter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "compiler/lower/intrinsics.h"

namespace regatta::c_like {
namespace {

int64_t NarrowestBytes(const loop::Program& program, const loop::Stmt& stmt) {
  int64_t bytes = 8;
  loop::VisitBuffers(stmt, [&](int buffer, bool) {
    bytes = std::min(bytes, DTypeBytes(program.buffers[buffer].dtype));
  });
  return bytes;
}

bool HasBarrier(const loop::Stmt& stmt) {
  return stmt.kind == loop::Stmt::Kind::kBarrier ||
         std::any_of(
             stmt.body.begin(), stmt.body.end(),
             [](const loop::StmtPtr& child) { return HasBarrier(*child); });
}

bool UsesF64(const loop::Value& value) {
  return value.dtype == DType::kF64 ||
         std::any_of(
             value.operands.begin(), value.operands.end(),
             [](const loop::ValuePtr& operand) { return UsesF64(*operand); });
}

bool UsesF64(const loop::Stmt& stmt) {
  return (stmt.value && UsesF64(*stmt.value)) ||
         std::any_of(
             stmt.body.begin(), stmt.body.end(),
             [](const loop::StmtPtr& child) { return UsesF64(*child); });
}

}  // namespace

void KernelEmitter::Line(std::string_view text) {
  absl::StrAppend(&out_, std::string(2 * depth_, ' '), std::string(text), "\n");
}

void KernelEmitter::Open(std::string_view head) {
  Line(absl::StrCat(std::string(head), " {"));
  ++depth_;
  known_.emplace_back();
}

void KernelEmitter::Close() {
  known_.pop_back();
  --depth_;
  Line("}");
}

EmittedKernel KernelEmitter::Emit(const loop::Kernel& kernel,
                                  const std::string& entry) {
  out_.clear();
  next_name_ = 0;
  vars_.clear();
  registers_.clear();
  known_.assign(1, {});
  result_ = EmittedKernel();
  result_.uses_f64 = UsesF64(*kernel.body);
  std::set<int> touched;
  stored_.clear();
  std::set<int> loaded;
  loop::VisitBuffers(*kernel.body, [&](int id, bool stores) {
    touched.insert(id);
    (stores ? stored_ : loaded).insert(id);
  });
  // Global memory that threads of a group hand to each other.
  barrier_global_ = std::any_of(stored_.begin(), stored_.end(), [&](int id) {
    return loaded.count(id) > 0 &&
           (buffer(id).scope == loop::Scope::kOutput ||
            buffer(id).scope == loop::Scope::kWorkspace);
  });
  std::vector<LocalArray> arrays;
  for (const int id : touched) {
    const loop::Scope scope = buffer(id).scope;
    if (scope == loop::Scope::kLocal) {
      arrays.push_back({Place(id), buffer(id).dtype, buffer(id).elements});
      result_.local_bytes += LocalBytes(arrays.back());
    } else if (scope != loop::Scope::kRegister &&
               scope != loop::Scope::kFragment) {
      result_.buffers.push_back(id);
    }
    if (!IsImage(id)) continue;
    const int64_t row = buffer(id).image_row;
    result_.image_width =
        std::max(result_.image_width, row / loop::kPixelElements);
    result_.image_height =
        std::max(result_.image_height, buffer(id).elements / row);
  }
  result_.launch_bytes = dialect_.LaunchBytes(arrays);
  if (result_.image_width > 0 && dialect_.images() == nullptr) {
    result_.unknown_intrinsic = "images";
    return std::move(result_);
  }

  EmitStmt(EmitGeometry(kernel));

  std::vector<std::string> parameters;
  for (const int id : result_.buffers) {
    const bool stored = stored_.count(id) > 0;
    parameters.push_back(
        IsImage(id) ? dialect_.images()->Parameter(stored, Place(id))
                    : dialect_.Parameter(buffer(id).dtype, stored, Place(id)));
  }
  Extents group = {1, 1, 1};
  std::copy(result_.group.begin(), result_.group.end(), group.begin());
  std::string registers;
  for (const auto& [id, element] : registers_) {
    absl::StrAppend(&registers, "  ",
                    buffer(id).scope == loop::Scope::kFragment
                        ? "unsigned int"
                        : dialect_.RegisterType(buffer(id).dtype),
                    " r", id, "_", element, ";\n");
  }
  result_.text = absl::StrCat(
      dialect_.KernelHead(entry, group), absl::StrJoin(parameters, ",\n    "),
      ") {\n", dialect_.LocalArrays(arrays), registers, out_, "}\n");
  return std::move(result_);
}

// Takes the group and thread loops off; returns what each thread runs.
const loop::Stmt& KernelEmitter::EmitGeometry(const loop::Kernel& kernel) {
  std::vector<const loop::Stmt*> groups, threads;
  const loop::Stmt* body = kernel.body.get();
  while (body->kind == loop::Stmt::Kind::kFor &&
         (body->loop == loop::LoopKind::kGroup ||
          body->loop == loop::LoopKind::kThread)) {
    (body->loop == loop::LoopKind::kGroup ? groups : threads).push_back(body);
    body = body->body[0].get();
  }
  // Dimension 0 is the innermost loop.
  std::reverse(groups.begin(), groups.end());
  std::reverse(threads.begin(), threads.end());
  BindIds(groups, /*groups=*/true);
  BindIds(threads, /*groups=*/false);
  const size_t dimensions =
      std::max({result_.grid.size(), result_.group.size(), size_t{1}});
  result_.grid.resize(dimensions, 1);
  result_.group.resize(dimensions, 1);
  for (const int64_t extent : result_.group) result_.group_threads *= extent;
  return *body;
}

void KernelEmitter::BindIds(const std::vector<const loop::Stmt*>& loops,
                            bool groups) {
  std::vector<int64_t>& extents = groups ? result_.grid : result_.group;
  bool flat = false;  // dimensions beyond what the device has: all in one
  for (size_t d = 0; d < loops.size(); ++d) {
    extents.push_back(loops[d]->extent);
    flat = flat ||
           (groups && d > 0 && loops[d]->extent > dialect_.max_outer_groups());
  }
  int64_t inner = 1;
  for (size_t d = 0; d < loops.size(); ++d) {
    const int var = loops[d]->var;
    const int64_t extent = loops[d]->extent;
    if (extent == 1) {
      vars_[var] = Binding();
      continue;
    }
    std::string id = groups ? dialect_.GroupId(flat ? 0 : static_cast<int>(d))
                            : dialect_.ThreadId(static_cast<int>(d));
    if (flat) {
      if (inner > 1) id = absl::StrCat(id, " / ", inner);
      if (d + 1 < loops.size()) id = absl::StrCat(id, " % ", extent);
      inner *= extent;
    }
    Line(absl::StrCat("const int v", var, " = ", id, ";"));
    vars_[var] = {absl::StrCat("v", var), extent - 1, 0};
  }
  if (flat) {
    int64_t all = 1;
    for (const int64_t extent : extents) all *= extent;
    extents = {all};
  }
}

void KernelEmitter::EmitStmt(const loop::Stmt& stmt) {
  switch (stmt.kind) {
    case loop::Stmt::Kind::kBlock:
      for (const loop::StmtPtr& child : stmt.body) EmitStmt(*child);
      return;
    case loop::Stmt::Kind::kFor:
      EmitFor(stmt);
      return;
    case loop::Stmt::Kind::kStore:
      EmitStore(stmt);
      return;
    case loop::Stmt::Kind::kIf:
      EmitIf(stmt);
      return;
    case loop::Stmt::Kind::kLet:
      EmitLet(stmt);
      return;
    case loop::Stmt::Kind::kBarrier:
      EmitBarrier();
      return;
    case loop::Stmt::Kind::kIntrinsic:
      EmitIntrinsic(stmt);
      return;
  }
}

void KernelEmitter::EmitFor(const loop::Stmt& stmt) {
  switch (stmt.loop) {
    case loop::LoopKind::kSerial:
    case loop::LoopKind::kParallel:  // one thread runs it
      EmitSerial(stmt);
      break;
    case loop::LoopKind::kUnrolled:
      EmitExpanded(stmt, 0, stmt.extent);
      break;
    case loop::LoopKind::kVector:
      EmitVector(stmt);
      break;
    case loop::LoopKind::kGroup:
    case loop::LoopKind::kThread:
      CHECK(false) << "a group or thread loop inside a kernel";
  }
  vars_.erase(stmt.var);
}

void KernelEmitter::EmitSerial(const loop::Stmt& stmt) {
  const int64_t copies = std::min(stmt.unroll, stmt.extent);
  const int64_t main = stmt.extent / copies * copies;
  EmitLoop(stmt, 0, main, copies);
  if (stmt.extent > main) EmitLoop(stmt, main, stmt.extent - main, 1);
}

void KernelEmitter::EmitExpanded(const loop::Stmt& stmt, int64_t first,
                                 int64_t count) {
  for (int64_t i = first; i < first + count; ++i) {
    vars_[stmt.var] = {"", 0, i};
    EmitStmt(*stmt.body[0]);
  }
}

// Iterations [first, first + count), `copies` at a time.
void KernelEmitter::EmitLoop(const loop::Stmt& stmt, int64_t first,
                             int64_t count, int64_t copies) {
  if (count == copies) {
    EmitExpanded(stmt, first, count);
    return;
  }
  // What the loop stores may be loaded at its top, in the next iteration.
  ForgetStoredIn(stmt);
  if (!dialect_.keep_loop().empty()) Line(dialect_.keep_loop());
  const std::string name = absl::StrCat("v", stmt.var);
  const std::string step = copies == 1 ? absl::StrCat("++", name)
                                       : absl::StrCat(name, " += ", copies);
  Open(absl::StrCat("for (int ", name, " = 0; ", name, " < ", count, "; ", step,
                    ")"));
  for (int64_t copy = 0; copy < copies; ++copy) {
    vars_[stmt.var] = {name, count - 1, first + copy};
    EmitStmt(*stmt.body[0]);
  }
  Close();
}

void KernelEmitter::EmitVector(const loop::Stmt& stmt) {
  const int64_t full = std::clamp<int64_t>(
      dialect_.vector_bytes() / NarrowestBytes(program_, stmt), 1,
      kMaxRunElements);
  for (int64_t first = 0; first < stmt.extent; first += full) {
    lanes_ = {stmt.var, first,
              static_cast<int>(std::min(full, stmt.extent - first))};
    vars_[stmt.var] = {"", 0, first};
    EmitStmt(*stmt.body[0]);
  }
  lanes_ = Lanes();
}

void KernelEmitter::EmitIf(const loop::Stmt& stmt) {
  const auto guards = ResolveGuards(stmt.guards);
  if (!guards) return;
  if (guards->empty()) {
    EmitStmt(*stmt.body[0]);
    return;
  }
  const bool uniform =
      std::all_of(guards->begin(), guards->end(),
                  [&](const FormGuard& guard) { return Uniform(guard); });
  if (uniform) {
    Open(absl::StrCat("if (", Condition(*guards, 0), ")"));
    EmitStmt(*stmt.body[0]);
    Close();
    return;
  }
  // Lane by lane.
  const Lanes all = lanes_;
  for (int i = 0; i < all.count; ++i) {
    lanes_ = {all.var, all.first + i, 1};
    vars_[all.var] = {"", 0, all.first + i};
    EmitIf(stmt);
  }
  lanes_ = all;
  vars_[all.var] = {"", 0, all.first};
}

void KernelEmitter::EmitBarrier() {
  Line(dialect_.Barrier(barrier_global_));
  ForgetShared();
}

// A variable of its own, or a constant where the form is one. Its name is never
// used again, for what is known about loads goes by names.
void KernelEmitter::EmitLet(const loop::Stmt& stmt) {
  const Form form = Resolve(stmt.offset);
  if (form.terms.empty()) {
    vars_[stmt.var] = {"", 0, form.constant / stmt.divisor % stmt.extent};
  } else {
    const std::string type =
        absl::StrCat("unsigned ", form.wide ? std::string(dialect_.long_type())
                                            : std::string("int"));
    std::string text = absl::StrCat("(", type, ")(", Text(form, 0), ")");
    if (stmt.divisor > 1) absl::StrAppend(&text, " / ", stmt.divisor, "u");
    if (form.reach / stmt.divisor >= stmt.extent) {
      absl::StrAppend(&text, " % ", stmt.extent, "u");
    }
    const std::string name = absl::StrCat("v", stmt.var, "_", next_name_++);
    Line(absl::StrCat("const int ", name, " = (int)(", text, ");"));
    vars_[stmt.var] = {name, stmt.extent - 1, 0};
  }
  EmitStmt(*stmt.body[0]);
  vars_.erase(stmt.var);
}

// Registers and words of fragments one by one; else an address or a number, and
// the condition where the operand may have one.
std::vector<std::string> KernelEmitter::IntrinsicOperand(
    const loop::IntrinsicOperand& value, int64_t bytes, bool may_be_guarded) {
  constexpr int64_t kWordBytes = 4;
  if (value.buffer < 0) return {absl::StrCat(value.number)};
  const Form form = Resolve(value.offset);
  const loop::Scope scope = buffer(value.buffer).scope;
  std::vector<std::string> texts;
  if (scope == loop::Scope::kRegister || scope == loop::Scope::kFragment) {
    CHECK(form.terms.empty()) << buffer(value.buffer).name;
    const int64_t per_word =
        scope == loop::Scope::kFragment
            ? kWordBytes / DTypeBytes(buffer(value.buffer).dtype)
            : 1;
    for (int64_t word = 0; word < bytes / kWordBytes; ++word) {
      texts.push_back(Register(value.buffer, form.constant / per_word + word));
    }
    return texts;
  }
  texts.push_back(absl::StrCat(Place(value.buffer), " + ",
                               ElementText(value.buffer, form, 0)));
  if (may_be_guarded) {
    const auto guards = ResolveGuards(value.guards);
    texts.push_back(!guards           ? "false"
                    : guards->empty() ? "true"
                                      : Condition(*guards, 0));
  }
  return texts;
}

void KernelEmitter::EmitIntrinsic(const loop::Stmt& stmt) {
  const loop::Intrinsic& intrinsic = *loop::FindIntrinsic(stmt.intrinsic);
  std::vector<std::string> operands;
  for (size_t i = 0; i < stmt.operands.size(); ++i) {
    const loop::IntrinsicOperandRule& rule = intrinsic.operands[i];
    for (std::string& text :
         IntrinsicOperand(stmt.operands[i], rule.bytes, rule.may_be_guarded)) {
      operands.push_back(std::move(text));
    }
  }
  const std::string text = dialect_.Intrinsic(stmt.intrinsic, operands);
  if (text.empty() && result_.unknown_intrinsic.empty()) {
    result_.unknown_intrinsic = stmt.intrinsic;
  }
  Line(text);
  // What it does, it may do to any memory, now or later.
  ForgetShared();
}

void KernelEmitter::EmitStore(const loop::Stmt& stmt) {
  if (stmt.accumulate != Reduction::kNone) {
    EmitAccumulate(stmt);
    return;
  }
  const Form form = Resolve(stmt.offset);
  const DType dtype = buffer(stmt.buffer).dtype;
  const bool narrow = dtype == DType::kF16 || dtype == DType::kBF16;
  const bool to_memory = buffer(stmt.buffer).scope != loop::Scope::kRegister;
  const loop::Value& value = *stmt.value;
  if (narrow && to_memory && value.kind == loop::Value::Kind::kLoad &&
      buffer(value.buffer).scope != loop::Scope::kRegister &&
      !IsImage(value.buffer) && !IsImage(stmt.buffer)) {
    StoreTo(stmt.buffer, form, Load(value, /*raw=*/true), /*raw=*/true);
    return;
  }
  if (narrow && to_memory && value.kind == loop::Value::Kind::kCast &&
      value.operands[0]->dtype == DType::kF32) {
    // Storing rounds.
    StoreTo(stmt.buffer, form, Emit(*value.operands[0]), /*raw=*/false);
    return;
  }
  StoreTo(stmt.buffer, form, Emit(value), /*raw=*/false);
}

void KernelEmitter::EmitAccumulate(const loop::Stmt& stmt) {
  const Form form = Resolve(stmt.offset);
  const DType dtype = buffer(stmt.buffer).dtype;
  const bool across = lanes_.count > 1 && form.lane == 0;
  const loop::Value& value = *stmt.value;
  loop::Value current;
  current.kind = loop::Value::Kind::kLoad;
  current.dtype = dtype;
  current.buffer = stmt.buffer;
  current.offset = stmt.offset;
  if (across) {
    Val lanes = Emit(value);
    Broadcast(lanes, dtype, lanes_.count);
    lanes = Settle(std::move(lanes), dtype);
    // Halves the lanes until one is left.
    while (lanes.size() > 1) {
      const size_t half = (lanes.size() + 1) / 2;
      for (size_t i = 0; i + half < lanes.size(); ++i) {
        lanes[i] =
            Named(Combine(stmt.accumulate, lanes[i], lanes[i + half], dtype),
                  dialect_.RegisterType(dtype));
      }
      lanes.resize(half);
    }
    const std::string old = Load(current, /*raw=*/false)[0];
    StoreTo(stmt.buffer, form,
            {Rounded(Combine(stmt.accumulate, old, lanes[0], dtype), dtype)},
            /*raw=*/false);
    return;
  }
  const bool multiply_add = stmt.accumulate == Reduction::kSum &&
                            IsFloat(dtype) &&
                            value.kind == loop::Value::Kind::kBinary &&
                            value.binary == BinaryOp::kMul;
  Val a = Emit(multiply_add ? *value.operands[0] : value);
  Val b = multiply_add ? Emit(*value.operands[1]) : Val();
  Val old = Load(current, /*raw=*/false);
  const size_t lanes = std::max({a.size(), b.size(), old.size()});
  Broadcast(a, dtype, lanes);
  Broadcast(old, dtype, lanes);
  if (multiply_add) Broadcast(b, dtype, lanes);
  Val sum;
  for (size_t i = 0; i < lanes; ++i) {
    // One expression, so that it may become one fused multiply-add.
    sum.push_back(Rounded(multiply_add
                              ? absl::StrCat(a[i], " * ", b[i], " + ", old[i])
                              : Combine(stmt.accumulate, old[i], a[i], dtype),
                          dtype));
  }
  StoreTo(stmt.buffer, form, std::move(sum), /*raw=*/false);
}

}  // namespace regatta::c_like
