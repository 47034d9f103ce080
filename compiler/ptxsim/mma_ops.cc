// mma.sync: matrix multiply-add on fragments spread over a warp.
//
// Products are exact; the k products of one instruction and its accumulator are
// summed up in double and rounded once. The hardware adds in a narrower format
// of its own, so real sums differ in their last bits; sums that fp32 (or f16,
// where that accumulates) holds exactly are equal.
//
// Fragments (PTX manual, "Warp-level matrix fragment"): with g = lane / 4,
// t = lane % 4 and E elements in a register, register r of A holds columns
// (r / 2) * 4E + tE.. of row g + 8 (r % 2), or for m = 8 columns 4Er + tE.. of
// row g; register r of B holds rows 4Er + tE.. of column g; element i of C and
// D is at row g + 8 (i / 2), column 2t + i % 2.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/ptxsim/float_bits.h"
#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/opcode_list.h"

namespace regatta::ptxsim {
namespace {

// Places of the first register of each operand.
constexpr int kD = 0;
constexpr int kA = 4;
constexpr int kB = 8;
constexpr int kC = 10;
constexpr int kMaxM = 16;
constexpr int kN = 8;
constexpr int kMaxK = 32;

// Instruction: mode is m, vector k; type that of C and D, source_type that of
// A, flags says whether B's bytes are signed.
constexpr uint16_t kSignedB = 1;

double ElementValue(uint32_t word, int index, Type type) {
  switch (type) {
    case Type::kF16:
      return FromF16(static_cast<uint16_t>(word >> (16 * index)));
    case Type::kBF16:
      return FromBF16(static_cast<uint16_t>(word >> (16 * index)));
    case Type::kS8:
      return static_cast<int8_t>(word >> (8 * index));
    case Type::kU8:
      return static_cast<uint8_t>(word >> (8 * index));
    default:  // tf32: the low bits do not count
      return std::bit_cast<float>(word & 0xFFFFE000u);
  }
}

// The matrices of a warp. Integers too are exact in double: 32 products of
// bytes and an accumulator of 32 bits.
struct Matrices {
  double a[kMaxM][kMaxK];
  double b[kMaxK][kN];
  double d[kMaxM][kN];
};

void GatherInputs(const Instruction& in, WarpContext& warp, Matrices& m) {
  const int elements = 4 / TypeBytes(in.source_type);
  const int a_registers = in.mode * in.vector / elements / kLanes;
  const int b_registers = kN * in.vector / elements / kLanes;
  const Type b_type = TypeBytes(in.source_type) > 1 ? in.source_type
                      : (in.flags & kSignedB) != 0  ? Type::kS8
                                                    : Type::kU8;
  for (int r = 0; r < a_registers; ++r) {
    const uint32_t* words = Cells32(warp, in.operand[kA + r]);
    const int row = in.mode == 16 ? 8 * (r % 2) : 0;
    const int column = 4 * elements * (in.mode == 16 ? r / 2 : r);
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int e = 0; e < elements; ++e) {
        m.a[row + lane / 4][column + lane % 4 * elements + e] =
            ElementValue(words[lane], e, in.source_type);
      }
    }
  }
  for (int r = 0; r < b_registers; ++r) {
    const uint32_t* words = Cells32(warp, in.operand[kB + r]);
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int e = 0; e < elements; ++e) {
        m.b[4 * elements * r + lane % 4 * elements + e][lane / 4] =
            ElementValue(words[lane], e, b_type);
      }
    }
  }
}

int RowOf(int lane, int element) { return lane / 4 + 8 * (element / 2); }
int ColumnOf(int lane, int element) { return 2 * (lane % 4) + element % 2; }

void GatherAccumulator(const Instruction& in, WarpContext& warp, Matrices& m) {
  const int count = in.mode * kN / kLanes;
  for (int i = 0; i < count; ++i) {
    const bool half = in.type == Type::kF16;
    const uint32_t* words = Cells32(warp, in.operand[kC + (half ? i / 2 : i)]);
    for (int lane = 0; lane < kLanes; ++lane) {
      double value;
      if (half) {
        value = FromF16(static_cast<uint16_t>(words[lane] >> (16 * (i % 2))));
      } else if (in.type == Type::kF32) {
        value = std::bit_cast<float>(words[lane]);
      } else {
        value = static_cast<int32_t>(words[lane]);
      }
      m.d[RowOf(lane, i)][ColumnOf(lane, i)] = value;
    }
  }
}

uint32_t IntegerResult(double value, bool saturate) {
  if (saturate) {
    value = std::clamp<double>(value, std::numeric_limits<int32_t>::min(),
                               std::numeric_limits<int32_t>::max());
  }
  return static_cast<uint32_t>(static_cast<int64_t>(value));
}

void ScatterResult(const Instruction& in, WarpContext& warp,
                   const Matrices& m) {
  const int count = in.mode * kN / kLanes;
  for (int i = 0; i < count; ++i) {
    const bool half = in.type == Type::kF16;
    uint32_t* words = Cells32(warp, in.operand[kD + (half ? i / 2 : i)]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const double value = m.d[RowOf(lane, i)][ColumnOf(lane, i)];
      if (half) {
        const int shift = 16 * (i % 2);
        words[lane] = (words[lane] & ~(0xFFFFu << shift)) |
                      (uint32_t{ToF16(value)} << shift);
      } else if (in.type == Type::kF32) {
        words[lane] = std::bit_cast<uint32_t>(static_cast<float>(value));
      } else {
        words[lane] = IntegerResult(value, in.saturate);
      }
    }
  }
}

void Multiply(const Instruction& in, WarpContext& warp) {
  Matrices m;
  GatherInputs(in, warp, m);
  GatherAccumulator(in, warp, m);
  for (int row = 0; row < in.mode; ++row) {
    double sum[kN];
    for (int n = 0; n < kN; ++n) sum[n] = 0;
    for (int k = 0; k < in.vector; ++k) {
      const double a = m.a[row][k];
      for (int n = 0; n < kN; ++n) sum[n] += a * m.b[k][n];
    }
    for (int n = 0; n < kN; ++n) m.d[row][n] += sum[n];
  }
  ScatterResult(in, warp, m);
}

// The k that a shape may have with an input type, for m = 16.
bool IsShape(int m, int k, Type input) {
  switch (TypeBytes(input)) {
    case 1:
      return m == 16 ? k == 16 || k == 32 : m == 8 && k == 16;
    case 2:
      return m == 16 && (k == 8 || k == 16);
    default:
      return m == 16 && (k == 4 || k == 8);
  }
}

// The shape, m and k; both 0 when there is none.
void TakeShape(InstructionBuilder& b, int& m, int& k) {
  m = k = 0;
  struct Shape {
    std::string_view name;
    int m, k;
  };
  static constexpr Shape kShapes[] = {{".m16n8k4", 16, 4},
                                      {".m16n8k8", 16, 8},
                                      {".m16n8k16", 16, 16},
                                      {".m16n8k32", 16, 32},
                                      {".m8n8k16", 8, 16}};
  for (const Shape& shape : kShapes) {
    if (!b.Take(shape.name)) continue;
    m = shape.m;
    k = shape.k;
    return;
  }
  b.Fail("has a shape that is not supported");
}

void Registers(InstructionBuilder& b, size_t index, int place, int count,
               bool destination, Type type) {
  const auto list = b.Elements(index);
  if (static_cast<int>(list.size()) != count) {
    return b.Fail(absl::StrCat("operand ", index, " has ", list.size(),
                               " registers, needs ", count));
  }
  for (int i = 0; i < count; ++i) {
    if (destination) {
      b.DestinationOf(place + i, list[i], type);
    } else {
      b.SourceOf(place + i, list[i], type);
    }
  }
}

void DecodeMma(InstructionBuilder& b) {
  b.RequireOperands(4, 4);
  Instruction& in = b.out();
  in.kind = InstructionClass::kMatrix;
  in.flow = Flow::kConverged;
  if (!b.Take(".sync") || !b.Take(".aligned")) {
    return b.Fail("is supported as .sync.aligned");
  }
  int m, k;
  TakeShape(b, m, k);
  if (!b.ok()) return;
  if (!b.Take(".row") || !b.Take(".col")) return b.Fail("needs .row.col");
  in.saturate = b.Take(".satfinite");
  in.type = b.TakeType();
  in.source_type = b.TakeType();
  const Type b_type = b.TakeType();
  const Type c_type = b.TakeType();
  if (!b.ok()) return;
  const bool bytes = TypeBytes(in.source_type) == 1;
  const bool known_input =
      bytes ? IsInteger(in.source_type) && in.source_type != Type::kB8
            : in.source_type == Type::kF16 || in.source_type == Type::kBF16 ||
                  in.source_type == Type::kTF32;
  const bool known_b = bytes ? b_type == Type::kS8 || b_type == Type::kU8
                             : b_type == in.source_type;
  const bool known_result =
      bytes ? in.type == Type::kS32
            : in.type == Type::kF32 ||
                  (in.type == Type::kF16 && in.source_type == Type::kF16);
  if (!known_input || !known_b || !known_result || c_type != in.type ||
      !IsShape(m, k, in.source_type)) {
    return b.Fail("combines types and shape in a way that is not supported");
  }
  in.flags = IsSigned(b_type) ? kSignedB : 0;
  in.mode = static_cast<uint8_t>(m);
  in.vector = static_cast<uint8_t>(k);
  in.immediate = static_cast<uint32_t>(m * kN * k);
  const int elements = 4 / TypeBytes(in.source_type);
  const int results = m * kN / kLanes / (in.type == Type::kF16 ? 2 : 1);
  const Type c_register = in.type == Type::kF16 ? Type::kB32 : in.type;
  Registers(b, 0, kD, results, true, c_register);
  Registers(b, 1, kA, m * k / elements / kLanes, false, Type::kB32);
  Registers(b, 2, kB, kN * k / elements / kLanes, false, Type::kB32);
  Registers(b, 3, kC, results, false, c_register);
  in.run = Multiply;
}

}  // namespace

OpcodeSpan MmaOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {{"mma", DecodeMma}};
  return kEntries;
}

}  // namespace regatta::ptxsim
