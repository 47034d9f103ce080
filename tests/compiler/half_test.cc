#include "compiler/module/half.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "compiler/module/tensor_bytes.h"
#include "gtest/gtest.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

// Doubles of all sizes that matter to a 16-bit float, ties included.
double RandomNumber(Random& random, int min_exponent, int max_exponent) {
  const int exponent =
      min_exponent +
      static_cast<int>(random.Below(max_exponent - min_exponent + 1));
  const double mantissa = random.Below(2) == 0
                              ? 1 + random.Unit()
                              : 1 + random.Below(1 << 13) / 8192.0;
  return std::ldexp(random.Below(2) == 0 ? mantissa : -mantissa, exponent);
}

TEST(HalfTest, EveryF16PatternSurvivesTheTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double value = F16BitsToDouble(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(F16BitsToDouble(DoubleToF16Bits(value))));
    } else {
      EXPECT_EQ(DoubleToF16Bits(value), bits) << value;
    }
  }
}

TEST(HalfTest, EveryBF16PatternSurvivesTheTripAndIsTheTopOfAFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double value = BF16BitsToDouble(static_cast<uint16_t>(bits));
    const float top = std::bit_cast<float>(bits << 16);
    if (std::isnan(top)) {
      EXPECT_TRUE(std::isnan(value));
    } else {
      EXPECT_EQ(value, top);
      EXPECT_EQ(DoubleToBF16Bits(value), bits);
    }
  }
}

TEST(HalfTest, F16RoundsAsTheCompilersOwnTypeDoes) {
  Random random(5);
  for (int round = 0; round < 100000; ++round) {
    const double value = RandomNumber(random, -27, 17);
    const auto half = static_cast<_Float16>(value);
    EXPECT_EQ(DoubleToF16Bits(value), std::bit_cast<uint16_t>(half)) << value;
    EXPECT_EQ(RoundToDType(value, DType::kF16), static_cast<double>(half));
  }
}

TEST(HalfTest, BF16RoundsFloatsToNearestEvenByTheirBits) {
  Random random(6);
  for (int round = 0; round < 100000; ++round) {
    const float value = static_cast<float>(RandomNumber(random, -140, 127));
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    EXPECT_EQ(DoubleToBF16Bits(value), rounded) << value;
  }
}

TEST(HalfTest, TiesGoToEvenAndTooLargeBecomesInfinity) {
  EXPECT_EQ(RoundToDType(2049, DType::kF16), 2048);
  EXPECT_EQ(RoundToDType(2051, DType::kF16), 2052);
  EXPECT_EQ(RoundToDType(65519, DType::kF16), 65504);
  EXPECT_EQ(RoundToDType(65520, DType::kF16), kInfinity);
  EXPECT_EQ(RoundToDType(-65520, DType::kF16), -kInfinity);
  EXPECT_EQ(RoundToDType(0x1p-25, DType::kF16), 0);
  EXPECT_EQ(RoundToDType(0x1.8p-25, DType::kF16), 0x1p-24);
  EXPECT_EQ(DoubleToF16Bits(-0.0), 0x8000);
}

TEST(HalfTest, IntegersWrapWhenStoredAndSaturateWhenCastFromFloats) {
  EXPECT_EQ(RoundToDType(128, DType::kI8), -128);
  EXPECT_EQ(RoundToDType(-129, DType::kI8), 127);
  EXPECT_EQ(RoundToDType(0x1p31, DType::kI32), -0x1p31);
  EXPECT_EQ(CastToDType(300.7, DType::kF32, DType::kI8), 127);
  EXPECT_EQ(CastToDType(-300.7, DType::kF32, DType::kI8), -128);
  EXPECT_EQ(CastToDType(-3.7, DType::kF32, DType::kI32), -3);
  EXPECT_EQ(CastToDType(1e20, DType::kF32, DType::kI32), 0x1p31 - 1);
  EXPECT_EQ(CastToDType(kNan, DType::kF32, DType::kI32), 0);
  EXPECT_EQ(CastToDType(300, DType::kI32, DType::kI8), 44);
}

TEST(TensorBytesTest, ValuesOfEveryTypeComeBackFromTheirBytes) {
  const std::vector<double> values = {0, 1, -2, 3, 100, -128};
  for (DType type : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                     DType::kI32, DType::kI8}) {
    const std::string bytes = ValuesToBytes(values, type);
    EXPECT_EQ(bytes.size(), values.size() * DTypeBytes(type));
    const auto back = BytesToValues(bytes, type);
    ASSERT_STATUS_OK(back);
    EXPECT_EQ(*back, values) << DTypeName(type);
  }
}

TEST(TensorBytesTest, BytesAreTheOnesThatTheProcessorUses) {
  const float expected[] = {1.5f, -2.25f};
  const std::string bytes = ValuesToBytes({1.5, -2.25}, DType::kF32);
  EXPECT_EQ(0, std::memcmp(bytes.data(), expected, sizeof(expected)));
}

TEST(TensorBytesTest, APartOfAnElementIsRefused) {
  const auto values = BytesToValues("abcde", DType::kF32);
  ASSERT_FALSE(values.ok());
  EXPECT_EQ(values.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DTypeTest, NamesReadBackAndInternalTypesAreNoTensorTypes) {
  for (DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kI8}) {
    EXPECT_EQ(ParseTensorDType(DTypeName(type)), type);
  }
  EXPECT_EQ(ParseTensorDType("f64"), std::nullopt);
  EXPECT_EQ(ParseTensorDType("bool"), std::nullopt);
  EXPECT_EQ(ParseTensorDType(""), std::nullopt);
}

}  // namespace
}  // namespace regatta
