#include "compiler/ptxsim/instruction_builder.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "base/strings.h"

namespace regatta::ptxsim {

InstructionBuilder::InstructionBuilder(const Statement& statement,
                                       NameResolver& names, FrameLayout& frame)
    : statement_(statement),
      names_(names),
      frame_(frame),
      taken_(statement.modifiers.size()) {
  out_.line = statement.line;
  if (statement.guard >= 0) {
    out_.guard = names_.RegisterSlot(statement.guard);
    out_.guard_negated = statement.guard_negated;
  }
}

void InstructionBuilder::Fail(std::string_view message) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat("PTX line ", statement_.line, ": ", statement_.FullName(),
                   ": ", ToAbsl(message)));
}

absl::Status InstructionBuilder::Finish() {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i]) {
      Fail(absl::StrCat("modifier ", statement_.modifiers[i],
                        " is not supported"));
    }
  }
  return status_;
}

bool InstructionBuilder::Take(std::string_view modifier) {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i] || statement_.modifiers[i] != modifier) continue;
    taken_[i] = true;
    return true;
  }
  return false;
}

std::optional<int> InstructionBuilder::TakeOneOf(
    std::initializer_list<std::string_view> list) {
  int index = 0;
  for (std::string_view modifier : list) {
    if (Take(modifier)) return index;
    ++index;
  }
  return std::nullopt;
}

std::optional<Type> InstructionBuilder::TryType() {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    if (const auto type = ParseType(statement_.modifiers[i])) {
      taken_[i] = true;
      return type;
    }
  }
  return std::nullopt;
}

Type InstructionBuilder::TakeType() {
  const auto type = TryType();
  if (!type.has_value()) Fail("needs a type that the simulator knows");
  return type.value_or(Type::kB32);
}

bool InstructionBuilder::TakeRounding() {
  const auto mode = TakeOneOf({".rn", ".rz", ".rm", ".rp"});
  if (!mode.has_value()) return false;
  out_.rounding = static_cast<Rounding>(*mode);
  return true;
}

const Operand& InstructionBuilder::raw(size_t index) const {
  static const Operand* const kNone = new Operand();
  return index < statement_.operands.size() ? statement_.operands[index]
                                            : *kNone;
}

void InstructionBuilder::RequireOperands(size_t least, size_t most) {
  if (operands() < least || operands() > most) {
    Fail(absl::StrCat("has ", operands(), " operands, needs ", least,
                      least == most ? "" : absl::StrCat(" to ", most)));
  }
}

void InstructionBuilder::CheckRegister(int id, Type type) {
  const Type have = names_.RegisterType(id);
  if (TypeBytes(have) == TypeBytes(type)) return;
  Fail(absl::StrCat("a register of type .", TypeName(have),
                    " where the instruction has a .", TypeName(type)));
}

Slot InstructionBuilder::Scratch(Type type) { return frame_.NewRegister(type); }

Slot InstructionBuilder::Constant(uint64_t bits, Type type) {
  const int bytes = TypeBytes(type);
  if (bytes < 8) bits &= (uint64_t{1} << (8 * bytes)) - 1;
  return frame_.Constant(bits, bytes == 8);
}

Slot InstructionBuilder::PredicateConstant(bool value) {
  return frame_.PredicateConstant(value);
}

void InstructionBuilder::SourceOf(int place, const Operand& operand,
                                  Type type) {
  if (operand.negated) return Fail("a negation is not supported here");
  Slot& slot = out_.operand[place];
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      CheckRegister(operand.id, type);
      slot = names_.RegisterSlot(operand.id);
      return;
    case Operand::Kind::kInteger:
      if (type == Type::kPred) {
        slot = PredicateConstant(operand.integer != 0);
      } else if (type == Type::kF32 || type == Type::kF64) {
        return Fail("an integer where a float is needed");
      } else {
        slot = Constant(operand.integer, type);
      }
      return;
    case Operand::Kind::kFloat32:
      if (TypeBytes(type) != 4) break;
      slot = Constant(operand.integer, type);
      return;
    case Operand::Kind::kFloat:
      if (type == Type::kF32) {
        slot = Constant(
            std::bit_cast<uint32_t>(static_cast<float>(operand.real)), type);
      } else if (TypeBytes(type) == 8) {
        slot = Constant(std::bit_cast<uint64_t>(operand.real), type);
      } else {
        break;
      }
      return;
    case Operand::Kind::kVariable: {
      const auto place_of = names_.VariablePlace(operand.id);
      if (!place_of.ok()) return FailWith(place_of.status());
      if (TypeBytes(type) < 4) return Fail("an address in a narrow operand");
      slot = Constant(place_of->address + operand.offset, type);
      return;
    }
    case Operand::Kind::kSpecial: {
      const auto special = frame_.SpecialRegister(operand.name);
      if (!special.has_value()) {
        return Fail(absl::StrCat(operand.name, " is not supported here"));
      }
      if (special->second != (TypeBytes(type) == 8) || TypeBytes(type) < 4) {
        return Fail(absl::StrCat(operand.name, " has another width"));
      }
      slot = special->first;
      return;
    }
    case Operand::Kind::kName:
      return Fail(absl::StrCat("'", operand.name, "' is not declared"));
    default:
      break;
  }
  Fail(absl::StrCat("an operand that is no value of type .", TypeName(type)));
}

void InstructionBuilder::DestinationOf(int place, const Operand& operand,
                                       Type type) {
  if (operand.kind == Operand::Kind::kSink) {
    out_.operand[place] = Scratch(type);
    return;
  }
  if (operand.kind != Operand::Kind::kRegister || operand.negated) {
    return Fail("the destination is no register");
  }
  CheckRegister(operand.id, type);
  out_.operand[place] = names_.RegisterSlot(operand.id);
}

int InstructionBuilder::MemoryRegister(int place, const Operand& operand,
                                       int bytes, bool store) {
  if (operand.kind == Operand::Kind::kRegister && !operand.negated) {
    const Type type = names_.RegisterType(operand.id);
    if (TypeBytes(type) < bytes || type == Type::kPred) {
      Fail("a register that is narrower than the value");
    }
    out_.operand[place] = names_.RegisterSlot(operand.id);
    return TypeBytes(type);
  }
  const Type bits = bytes == 8 ? Type::kB64 : Type::kB32;
  if (store) {
    if (bytes == 8 && operand.kind == Operand::Kind::kFloat32) {
      Fail("a 32-bit float in a 64-bit store");
    }
    if (operand.kind == Operand::Kind::kFloat && bytes == 4) {
      SourceOf(place, operand, Type::kF32);
    } else {
      SourceOf(place, operand, bits);
    }
  } else if (operand.kind == Operand::Kind::kSink) {
    out_.operand[place] = Scratch(bits);
  } else {
    Fail("the destination is no register");
  }
  return TypeBytes(bits);
}

void InstructionBuilder::Address(int place, size_t index) {
  const Operand& operand = raw(index);
  if (operand.kind != Operand::Kind::kAddress) {
    return Fail("an address in brackets is needed");
  }
  const Operand& base = operand.elements[0];
  out_.offset = operand.offset;
  if (base.kind == Operand::Kind::kRegister) {
    const int bytes = TypeBytes(names_.RegisterType(base.id));
    if (bytes < 4)
      return Fail("an address register of 32 or 64 bits is needed");
    out_.wide_address = bytes == 8;
    out_.operand[place] = names_.RegisterSlot(base.id);
    return;
  }
  out_.wide_address = true;
  if (base.kind == Operand::Kind::kVariable) {
    const auto variable = names_.VariablePlace(base.id);
    if (!variable.ok()) return FailWith(variable.status());
    const bool argument =
        out_.space == Space::kParam && variable->space == Space::kLocal;
    if (argument) out_.space = Space::kLocal;
    if (out_.space != variable->space) {
      // A constant or global address is its own generic address.
      const bool flat =
          out_.space == Space::kGeneric && (variable->space == Space::kGlobal ||
                                            variable->space == Space::kConst);
      if (!flat) return Fail("the variable lies in another space");
    }
    out_.operand[place] =
        Constant(variable->address & (argument ? ~kParamIsLocal : ~uint64_t{0}),
                 Type::kB64);
    return;
  }
  SourceOf(place, base, Type::kB64);
}

uint64_t InstructionBuilder::Immediate(size_t index) {
  if (raw(index).kind != Operand::Kind::kInteger) Fail("a number is needed");
  return raw(index).integer;
}

std::vector<Operand> InstructionBuilder::Elements(size_t index) const {
  const Operand& operand = raw(index);
  if (operand.kind == Operand::Kind::kList) return operand.elements;
  return {operand};
}

}  // namespace regatta::ptxsim
