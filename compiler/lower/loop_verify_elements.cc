// What statements touch, checked by the verifier: elements, values, operands of
// intrinsics.
#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/lower/loop_range.h"
#include "compiler/lower/loop_verifier.h"
#include "compiler/lower/value_types.h"

namespace regatta::loop {
namespace {

bool IsThreadsOwn(const Buffer& buffer) {
  return buffer.scope == Scope::kRegister || buffer.scope == Scope::kFragment;
}

IntrinsicOperandRule::Place PlaceOf(const Buffer& buffer) {
  using Place = IntrinsicOperandRule::Place;
  switch (buffer.scope) {
    case Scope::kLocal:
      return Place::kLocal;
    case Scope::kRegister:
      return Place::kRegister;
    case Scope::kFragment:
      return Place::kFragment;
    case Scope::kInput:
    case Scope::kOutput:
    case Scope::kWorkspace:
      break;
  }
  return Place::kGlobal;
}

}  // namespace

absl::Status Verifier::CheckIntrinsic(const Stmt& stmt) {
  const Intrinsic* const intrinsic = FindIntrinsic(stmt.intrinsic);
  if (intrinsic == nullptr) return Error("no such intrinsic");
  if (!device_) return Error("only device kernels have intrinsics");
  if (loops_.back().kind == LoopKind::kVector) {
    return Error("inside a vector loop");
  }
  if (intrinsic->whole_warps) RETURN_IF_ERROR(CheckMeeting(""));
  if (stmt.operands.size() != intrinsic->operands.size()) {
    return Error(
        absl::StrCat("takes ", intrinsic->operands.size(), " operands"));
  }
  std::optional<DType> common;
  for (size_t i = 0; i < stmt.operands.size(); ++i) {
    const IntrinsicOperand& operand = stmt.operands[i];
    const IntrinsicOperandRule& rule = intrinsic->operands[i];
    const bool number = rule.place == IntrinsicOperandRule::Place::kNumber;
    if (number != (operand.buffer < 0)) {
      return Error(absl::StrCat("operand ", i, " is ",
                                number ? "no number" : "no element"));
    }
    if (number) continue;
    RETURN_IF_ERROR(CheckIntrinsicElement(operand, rule));
    const DType of = program_.buffers[operand.buffer].dtype;
    const DType wanted = rule.dtype ? *rule.dtype : common.value_or(of);
    if (of != wanted) return Error("elements of unequal types");
    if (!rule.dtype) common = of;
  }
  return absl::OkStatus();
}

absl::Status Verifier::CheckIntrinsicElement(const IntrinsicOperand& operand,
                                             const IntrinsicOperandRule& rule) {
  if (operand.buffer >= static_cast<int>(program_.buffers.size())) {
    return Error(absl::StrCat("no buffer ", operand.buffer));
  }
  const Buffer& buffer = program_.buffers[operand.buffer];
  if (PlaceOf(buffer) != rule.place) {
    return Error(absl::StrCat(buffer.name, " is in memory of the wrong kind"));
  }
  if (!operand.guards.empty() && !rule.may_be_guarded) {
    return Error(absl::StrCat(buffer.name, " is guarded"));
  }
  const int64_t count = rule.bytes / DTypeBytes(buffer.dtype);
  RETURN_IF_ERROR(CheckElement(operand.buffer, operand.offset, operand.guards));
  RETURN_IF_ERROR(CheckElement(operand.buffer, operand.offset + (count - 1),
                               operand.guards));
  bool aligned = operand.offset.constant() % count == 0;
  for (const Affine::Term& term : operand.offset.terms()) {
    aligned = aligned && term.coeff % count == 0;
  }
  if (!aligned) {
    return Error(absl::StrCat("the offset of ", buffer.name,
                              " is no multiple of ", count));
  }
  using Use = IntrinsicOperandRule::Use;
  if (rule.use != Use::kWrites && !written_[operand.buffer]) {
    return Error(
        absl::StrCat("reads ", buffer.name, " before anything wrote it"));
  }
  if (rule.use == Use::kReads) return absl::OkStatus();
  if (buffer.scope == Scope::kInput) return Error("stores to an input");
  RETURN_IF_ERROR(CheckRace(operand.offset, buffer));
  written_[operand.buffer] = true;
  return absl::OkStatus();
}

absl::Status Verifier::CheckRace(const Affine& offset,
                                 const Buffer& buffer) const {
  if (IsThreadsOwn(buffer) || buffer.per_thread) return absl::OkStatus();
  for (const EnclosingLoop& loop : loops_) {
    const bool side_by_side =
        loop.kind == LoopKind::kParallel || loop.kind == LoopKind::kThread ||
        (loop.kind == LoopKind::kGroup && buffer.scope != Scope::kLocal);
    if (side_by_side && loop.extent > 1 && !DependsOn(offset, loop.var) &&
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

// Itself or through lets.
bool Verifier::DependsOn(const Affine& form, int var) const {
  return std::any_of(form.terms().begin(), form.terms().end(),
                     [&](const Affine::Term& term) {
                       const std::vector<int>& of = Find(term.var)->of;
                       return term.var == var ||
                              std::find(of.begin(), of.end(), var) != of.end();
                     });
}

// Whether the guards around this place let one iteration of a loop through.
bool Verifier::LeavesOne(int var) const {
  const std::optional<Range> range =
      GuardedRange(Affine::Var(var), guards_, [&](int v) { return Extent(v); });
  return !range || range->min == range->max;
}

// Vars in scope, offset in bounds, the buffer's own rules.
absl::Status Verifier::CheckElement(int id, const Affine& offset,
                                    const std::vector<Guard>& guards) {
  const Buffer& buffer = program_.buffers[id];
  RETURN_IF_ERROR(CheckForm(offset));
  for (const Guard& guard : guards) RETURN_IF_ERROR(CheckForm(guard.form));
  std::vector<Guard> all = guards_;
  all.insert(all.end(), guards.begin(), guards.end());
  const std::optional<Range> range =
      GuardedRange(offset, all, [&](int var) { return Extent(var); });
  if (range && (range->min < 0 || range->max >= buffer.elements)) {
    return Error(absl::StrCat("offset of ", buffer.name, " spans [", range->min,
                              ", ", range->max, "] of ", buffer.elements,
                              " elements"));
  }
  if (IsThreadsOwn(buffer)) {
    for (const Affine::Term& term : offset.terms()) {
      const EnclosingLoop* const found = Find(term.var);
      if (!found->expanded) {
        return Error(absl::StrCat("register buffer ", buffer.name,
                                  " indexed by v", term.var,
                                  ", which is not unrolled"));
      }
    }
  }
  if ((buffer.scope == Scope::kLocal || buffer.scope == Scope::kFragment) &&
      !device_) {
    return Error(absl::StrCat("local buffer ", buffer.name,
                              " in a kernel without groups"));
  }
  if (IsThreadsOwn(buffer) || buffer.scope == Scope::kLocal ||
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

absl::Status Verifier::CheckForm(const Affine& form) const {
  for (const Affine::Term& term : form.terms()) {
    if (Find(term.var) == nullptr) {
      return Error(absl::StrCat("v", term.var, " is not in scope"));
    }
  }
  return absl::OkStatus();
}

absl::Status Verifier::CheckValue(const Value& value) {
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

absl::Status Verifier::CheckLoad(const Value& value) {
  if (value.buffer < 0 ||
      value.buffer >= static_cast<int>(program_.buffers.size())) {
    return Error(absl::StrCat("no buffer ", value.buffer));
  }
  const Buffer& buffer = program_.buffers[value.buffer];
  if (value.dtype != buffer.dtype) {
    return Error(absl::StrCat("loads ", buffer.name, " as ",
                              std::string(DTypeName(value.dtype))));
  }
  if (buffer.scope == Scope::kFragment) return Error("loads a fragment");
  if (!written_[value.buffer]) {
    return Error(
        absl::StrCat("reads ", buffer.name, " before anything wrote it"));
  }
  return CheckElement(value.buffer, value.offset, value.guards);
}

absl::Status Verifier::CheckTypes(const Value& value) const {
  const std::string wrong = TypeError(value);
  if (wrong.empty()) return absl::OkStatus();
  return Error(absl::StrCat(wrong, " in ", ToString(program_, value)));
}

const Verifier::EnclosingLoop* Verifier::Find(int var) const {
  const auto it =
      std::find_if(loops_.begin(), loops_.end(),
                   [&](const EnclosingLoop& l) { return l.var == var; });
  return it == loops_.end() ? nullptr : &*it;
}

}  // namespace regatta::loop
