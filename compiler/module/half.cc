#include "compiler/module/half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace regatta {
namespace {

struct Format {
  int precision;     // significant bits, the hidden one included
  int min_exponent;  // of the least normal number
  int max_exponent;  // of the greatest number
};

constexpr Format kF16 = {11, -14, 15};
constexpr Format kBF16 = {8, -126, 127};

// The nearest number of the format, infinity included.
double RoundToFormat(double value, const Format& format) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.min_exponent);
  const double ulp = std::ldexp(1.0, exponent - format.precision + 1);
  // Exact: a power of two divides, and the quotient has at most 53 bits.
  const double rounded = std::nearbyint(value / ulp) * ulp;
  const double limit = std::ldexp(1.0, format.max_exponent + 1);
  if (std::fabs(rounded) < limit) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

// The bits of a number that the format holds exactly.
uint16_t Bits(double value, const Format& format) {
  const int mantissa_bits = format.precision - 1;
  const int bias = format.max_exponent;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const uint16_t top = static_cast<uint16_t>((2 * bias + 1) << mantissa_bits);
  if (std::isnan(value)) return sign | top | (1 << (mantissa_bits - 1));
  if (std::isinf(value)) return sign | top;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), format.min_exponent);
  const uint32_t significand =
      static_cast<uint32_t>(std::ldexp(magnitude, mantissa_bits - exponent));
  // A subnormal lacks the hidden bit, which the exponent field would add.
  const uint32_t field = (exponent + bias - 1) << mantissa_bits;
  return static_cast<uint16_t>(sign | (field + significand));
}

double FromBits(uint16_t bits, const Format& format) {
  const int mantissa_bits = format.precision - 1;
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const int field = (bits & 0x7FFF) >> mantissa_bits;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (field == 2 * format.max_exponent + 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const uint32_t hidden = field == 0 ? 0 : 1u << mantissa_bits;
  const int exponent = std::max(field, 1) - format.max_exponent;
  return sign * std::ldexp(static_cast<double>(mantissa | hidden),
                           exponent - mantissa_bits);
}

int64_t ToInt64(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

double Saturate(double value, double low, double high) {
  if (std::isnan(value)) return 0;
  return std::trunc(std::clamp(value, low, high));
}

}  // namespace

uint16_t DoubleToF16Bits(double value) {
  return Bits(RoundToFormat(value, kF16), kF16);
}

uint16_t DoubleToBF16Bits(double value) {
  return Bits(RoundToFormat(value, kBF16), kBF16);
}

double F16BitsToDouble(uint16_t bits) { return FromBits(bits, kF16); }
double BF16BitsToDouble(uint16_t bits) { return FromBits(bits, kBF16); }

double RoundToDType(double value, DType type) {
  switch (type) {
    case DType::kF64:
      return value;
    case DType::kF32:
      return static_cast<float>(value);
    case DType::kF16:
      return RoundToFormat(value, kF16);
    case DType::kBF16:
      return RoundToFormat(value, kBF16);
    case DType::kI32:
      return static_cast<int32_t>(ToInt64(value));
    case DType::kI8:
      return static_cast<int8_t>(ToInt64(value));
    case DType::kBool:
      return value != 0;
  }
  return value;
}

double CastToDType(double value, DType from, DType to) {
  if (IsFloat(from) && to == DType::kI32) {
    return Saturate(value, -0x1p31, 0x1p31 - 1);
  }
  if (IsFloat(from) && to == DType::kI8) return Saturate(value, -128, 127);
  return RoundToDType(value, to);
}

}  // namespace regatta
