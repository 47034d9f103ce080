// Rounding to the float formats of PTX, in every rounding mode, and back.
//
// compiler/module/half.h rounds tensors' elements to nearest; kernels need the
// other modes, unpacked bits and speed, so the simulator has its own. Pure
// functions; thread-safe.
#ifndef REGATTA_COMPILER_PTXSIM_FLOAT_BITS_H_
#define REGATTA_COMPILER_PTXSIM_FLOAT_BITS_H_

#include <bit>
#include <cmath>
#include <cstdint>

#include "compiler/ptxsim/program.h"

namespace regatta::ptxsim {

// `value` in a format of `exponent_bits` and `fraction_bits`, as its bits. NaN
// becomes the one NaN that PTX operations give: all ones but the sign. Infinity
// where the mode allows it, else the greatest number. Values below the normal
// range become subnormals.
template <int exponent_bits, int fraction_bits>
inline uint32_t RoundToBits(double value, Rounding mode) {
  constexpr int kBias = (1 << (exponent_bits - 1)) - 1;
  constexpr uint32_t kInfinity = ((1u << exponent_bits) - 1) << fraction_bits;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint32_t sign = static_cast<uint32_t>(bits >> 63)
                        << (exponent_bits + fraction_bits);
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  if (magnitude > 0x7FF0000000000000u) {
    return kInfinity | ((1u << fraction_bits) - 1);
  }
  if (magnitude == 0x7FF0000000000000u) return sign | kInfinity;
  if (magnitude == 0) return sign;
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  const uint64_t significand =
      (magnitude & 0xFFFFFFFFFFFFFu) | (exponent > -1023 ? 1ull << 52 : 0);
  int drop = 52 - fraction_bits;
  int field = exponent + kBias;  // the biased exponent
  if (field <= 0) {              // subnormal: more bits fall away
    drop += 1 - field;
    field = 0;
  }
  if (drop > 62) drop = 62;
  uint64_t kept = significand >> drop;
  const uint64_t rest = significand & ((uint64_t{1} << drop) - 1);
  const uint64_t half = uint64_t{1} << (drop - 1);
  bool up = false;
  switch (mode) {
    case Rounding::kNearest:
      up = rest > half || (rest == half && (kept & 1) != 0);
      break;
    case Rounding::kNearestAway:
      up = rest >= half;
      break;
    case Rounding::kZero:
      break;
    case Rounding::kDown:
      up = rest != 0 && sign != 0;
      break;
    case Rounding::kUp:
      up = rest != 0 && sign == 0;
      break;
  }
  kept += up ? 1 : 0;
  // The hidden bit of a normal number raises the exponent field by one.
  const uint64_t result =
      (field == 0 ? 0 : (static_cast<uint64_t>(field) - 1) << fraction_bits) +
      kept;
  if (result < kInfinity) return sign | static_cast<uint32_t>(result);
  const bool to_infinity = mode == Rounding::kNearest ||
                           mode == Rounding::kNearestAway ||
                           (mode == Rounding::kUp && sign == 0) ||
                           (mode == Rounding::kDown && sign != 0);
  return sign | (to_infinity ? kInfinity : kInfinity - 1);
}

inline uint16_t ToF16(double value, Rounding mode = Rounding::kNearest) {
  return static_cast<uint16_t>(RoundToBits<5, 10>(value, mode));
}
inline uint16_t ToBF16(double value, Rounding mode = Rounding::kNearest) {
  return static_cast<uint16_t>(RoundToBits<8, 7>(value, mode));
}
inline float ToF32(double value, Rounding mode) {
  if (mode == Rounding::kNearest) return static_cast<float>(value);
  return std::bit_cast<float>(RoundToBits<8, 23>(value, mode));
}

// Exact. NaNs keep their bits as far as there is room.
inline float FromF16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7FFF;
  // The exponent's bias is moved by a product with a power of two, which also
  // normalises subnormals.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const uint32_t result = magnitude >= 0x7C00 ? 0x7F800000u | (magnitude << 13)
                                              : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(sign | result);
}
inline float FromBF16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// A subnormal as the zero of its sign.
inline float FlushF32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return (bits & 0x7F800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u)
                                   : value;
}
inline uint16_t FlushF16(uint16_t bits) {
  return (bits & 0x7C00) == 0 ? bits & 0x8000 : bits;
}

// .sat: into [0, 1], NaN to 0.
inline float SaturateF32(float value) {
  return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f;
}

// a * b + c in a float, rounded once. `sum` of exact products and sums in
// double is made odd where it is inexact, after which a second rounding is
// harmless (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums",
// 2008).
inline double OddSum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  if (error == 0 || !std::isfinite(sum) || std::isnan(error)) return sum;
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if ((bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1 : -1;
  return std::bit_cast<double>(bits);
}

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_FLOAT_BITS_H_
