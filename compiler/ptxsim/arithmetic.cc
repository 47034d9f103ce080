#include "compiler/ptxsim/arithmetic.h"

#include "absl/strings/str_cat.h"
#include "compiler/ptxsim/opcode_list.h"

namespace regatta::ptxsim {
namespace {

template <Arithmetic op>
void Decode(InstructionBuilder& b) {
  b.RequireOperands(SourceCount(op) + 1, SourceCount(op) + 1);
  const Type type = b.TakeType();
  switch (type) {
    case Type::kF32:
      return DecodeFloat32(b, op);
    case Type::kF64:
      return DecodeFloat64(b, op);
    case Type::kF16:
    case Type::kF16x2:
    case Type::kBF16:
    case Type::kBF16x2:
      return DecodeFloat16(b, op, type);
    default:
      if (IsInteger(type) && TypeBytes(type) >= 2) {
        return DecodeInteger(b, op, type);
      }
      return b.Fail(
          absl::StrCat("type .", TypeName(type), " is not supported here"));
  }
}

// addc, subc, madc.
template <Arithmetic op>
void DecodeWithCarry(InstructionBuilder& b) {
  b.RequireOperands(SourceCount(op) + 1, SourceCount(op) + 1);
  const bool leaves = b.Take(".cc");
  DecodeCarry(b, op, b.TakeType(), /*takes_carry=*/true, leaves);
}

}  // namespace

OpcodeSpan ArithmeticOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {
      {"add", Decode<Arithmetic::kAdd>},
      {"sub", Decode<Arithmetic::kSub>},
      {"mul", Decode<Arithmetic::kMul>},
      {"div", Decode<Arithmetic::kDiv>},
      {"rem", Decode<Arithmetic::kRem>},
      {"min", Decode<Arithmetic::kMin>},
      {"max", Decode<Arithmetic::kMax>},
      {"abs", Decode<Arithmetic::kAbs>},
      {"neg", Decode<Arithmetic::kNeg>},
      {"mad", Decode<Arithmetic::kMad>},
      {"fma", Decode<Arithmetic::kFma>},
      {"addc", DecodeWithCarry<Arithmetic::kAdd>},
      {"subc", DecodeWithCarry<Arithmetic::kSub>},
      {"madc", DecodeWithCarry<Arithmetic::kMad>},
  };
  return kEntries;
}

}  // namespace regatta::ptxsim
