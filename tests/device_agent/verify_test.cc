#include <unistd.h>

#include <cmath>
#include <limits>

#include "base/memory_file.h"
#include "compiler/module/tensor_bytes.h"
#include "device_agent/verify/guarded_memory.h"
#include "device_agent/verify/input_data.h"
#include "device_agent/verify/output_check.h"
#include "device_agent/verify/reference_file.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// ---- inputs ----

TEST(InputDataTest, EveryTypeHoldsItsValuesExactlyAndInRange) {
  for (DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kI8}) {
    const std::vector<double> values = InputValues(5, 0, 5000, type);
    std::string bytes(5000 * DTypeBytes(type), '\0');
    FillInput(5, 0, 5000, type, bytes.data());
    EXPECT_EQ(*BytesToValues(bytes, type), values) << DTypeName(type);
    const double bound = IsFloat(type) ? 1 : 8;
    double sum = 0;
    for (double value : values) {
      EXPECT_GE(value, -bound);
      EXPECT_LT(value, bound);
      sum += value / bound;
    }
    // Standard error of the mean is 0.577 / sqrt(5000) = 0.008; integers in
    // [-8, 7] have mean -1/16.
    EXPECT_NEAR(sum / 5000, IsFloat(type) ? 0 : -1.0 / 16, 0.04);
  }
}

TEST(InputDataTest, SeedTensorAndElementAllMatter) {
  const double value = InputValue(1, 2, 3, DType::kF32);
  EXPECT_EQ(InputValue(1, 2, 3, DType::kF32), value);
  EXPECT_NE(InputValue(2, 2, 3, DType::kF32), value);
  EXPECT_NE(InputValue(1, 3, 3, DType::kF32), value);
  EXPECT_NE(InputValue(1, 2, 4, DType::kF32), value);
}

// ---- tolerance ----

TEST(ToleranceTest, F32FollowsTheFormula) {
  const Tolerance tolerance(DType::kF32, 512, 7.5);
  const double spacing = std::pow(2, -23);
  EXPECT_DOUBLE_EQ(tolerance.At(2),
                   spacing * (4 * std::sqrt(512.0) * 7.5 + 16 * 2) +
                       spacing * 2 * (7.5 + 2));
}

TEST(ToleranceTest, NarrowTypesAllowTheirOwnRounding) {
  // Half a spacing of f16 at 1.5 is 2^-11; of bf16, 2^-8.
  EXPECT_LE(Tolerance(DType::kF16, 1, 1).Error(1.5 + 0x1p-11, 1.5), 1);
  EXPECT_GT(Tolerance(DType::kF32, 1, 1).Error(1.5 + 0x1p-11, 1.5), 1);
  EXPECT_LE(Tolerance(DType::kBF16, 1, 1).Error(1.5 + 0x1p-8, 1.5), 1);
  EXPECT_GT(Tolerance(DType::kF16, 1, 1).Error(1.5 + 0x1p-5, 1.5), 1);
}

TEST(ToleranceTest, OneMissingTermOfALongSumIsSeen) {
  // A dot product of 4096 terms in [-1, 1): rms sqrt(4096) / 3; one term is of
  // the order of 1/4.
  EXPECT_GT(Tolerance(DType::kF32, 4096, 64.0 / 3).Error(10.25, 10), 1);
}

TEST(ToleranceTest, SmallOutputsAreNotForgivenBecauseTheSumIsLong) {
  // Softmax over 1024 columns: elements near 1/1024, 1 % wrong.
  EXPECT_GT(Tolerance(DType::kF32, 1024, 1e-3).Error(1.01e-3, 1e-3), 1);
}

TEST(ToleranceTest, IntegersMustBeEqual) {
  const Tolerance tolerance(DType::kI8, 1000, 0);
  EXPECT_EQ(tolerance.Error(5, 5), 0);
  EXPECT_EQ(tolerance.Error(6, 5), kInf);
}

TEST(ToleranceTest, WhatIsNotFiniteMustBeTheSame) {
  const Tolerance tolerance(DType::kF32, 1, 1);
  EXPECT_EQ(tolerance.Error(kInf, kInf), 0);
  EXPECT_EQ(tolerance.Error(kNan, kNan), 0);
  EXPECT_EQ(tolerance.Error(-kInf, kInf), kInf);
  EXPECT_EQ(tolerance.Error(kNan, 1), kInf);
  EXPECT_EQ(tolerance.Error(1, kNan), kInf);
  EXPECT_EQ(tolerance.Error(kInf, 1), kInf);
}

// ---- comparing ----

OutputCheck Check(std::vector<double> got, std::vector<double> expected,
                  DType type = DType::kF32) {
  const std::string got_bytes = ValuesToBytes(got, type);
  const std::string expected_bytes = ValuesToBytes(expected, type);
  return CheckOutput(got_bytes.data(), expected_bytes.data(),
                     static_cast<int64_t>(got.size()), type, 10);
}

TEST(OutputCheckTest, FindsTheFirstOfSeveralWrongElements) {
  std::vector<double> expected(10'000, 1.0), got = expected;
  got[5000] = 1.5;
  got[9999] = kNan;
  const OutputCheck check = Check(got, expected);
  EXPECT_FALSE(check.ok());
  EXPECT_EQ(check.wrong, 2);
  EXPECT_EQ(check.element, 5000);
  EXPECT_EQ(check.max_error, kInf);
  EXPECT_EQ(check.Describe(10'000),
            "element 5000 of 10000: got 1.5, expected 1; 2 elements are wrong");
}

TEST(OutputCheckTest, RoundingErrorsPassAndAreMeasured) {
  const OutputCheck check = Check({1 + 0x1p-23, 2}, {1, 2});
  EXPECT_TRUE(check.ok());
  EXPECT_GT(check.max_error, 0);
  EXPECT_LT(check.max_error, 0.2);
  EXPECT_EQ(Check({1, 2}, {1, 2}).max_error, 0);
}

TEST(OutputCheckTest, AnIntegerOffByOneIsWrong) {
  EXPECT_TRUE(Check({-8, 7}, {-8, 7}, DType::kI8).ok());
  EXPECT_EQ(Check({-8, 6}, {-8, 7}, DType::kI8).element, 1);
}

TEST(OutputCheckTest, SamplesAreComparedInDoublePrecision) {
  const std::string output =
      ValuesToBytes(std::vector<double>{1, 2, 3, 4}, DType::kF32);
  EXPECT_TRUE(
      CheckSamples(output.data(), 4, DType::kF32, 1, {3, 0}, {4, 1}).ok());
  const OutputCheck check =
      CheckSamples(output.data(), 4, DType::kF32, 1, {3, 2}, {4, 3.5});
  EXPECT_EQ(check.element, 2);
}

// ---- guards ----

TEST(GuardedMemoryTest, SeesWritesOnEitherSideOfTheBuffer) {
  auto memory = GuardedMemory::Allocate("output C", 100, 64);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 64, 0u);
  memory->Poison(0xFF);
  EXPECT_EQ(static_cast<uint8_t>(memory->data()[99]), 0xFF);
  EXPECT_EQ(memory->Damage(), "");
  memory->data()[100] = 0;
  EXPECT_EQ(memory->Damage(), "1 bytes after output C were overwritten");
  memory->Poison(0xFF);
  memory->data()[-1] = memory->data()[-2] = 0;
  EXPECT_EQ(memory->Damage(), "2 bytes before output C were overwritten");
}

TEST(GuardedMemoryDeathTest, NobodyReadsPastTheEndOfTheLastLine) {
  auto memory = GuardedMemory::Allocate("output C", 4096 * 3 - 32, 64);
  ASSERT_TRUE(memory.ok());
  volatile const char* const data = memory->data();
  EXPECT_EXIT({ [[maybe_unused]] char c = data[4096 * 3]; },
              ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT({ [[maybe_unused]] char c = data[-4096]; },
              ::testing::KilledBySignal(SIGSEGV), "");
}

// ---- reference files ----

Module TwoTensors(int64_t input_bytes, int64_t output_bytes) {
  Module module;
  module.workload = "test";
  for (const auto& [name, role, bytes] :
       {std::tuple("A", BufferRole::kInput, input_bytes),
        std::tuple("B", BufferRole::kOutput, output_bytes)}) {
    ModuleBuffer& buffer = module.buffers.emplace_back();
    buffer.name = name;
    buffer.role = role;
    buffer.bytes = bytes;
  }
  return module;
}

TEST(ReferenceFileTest, WhatWasWrittenIsReadBack) {
  const Module module = TwoTensors(5000, 100);
  auto file = CreateMemoryFile("reference");
  ASSERT_TRUE(file.ok());
  {
    auto made = CreateReferenceFile(module, file->get());
    ASSERT_TRUE(made.ok()) << made.status();
    memset(made->inputs[0].data(), 'i', 5000);
    memset(made->outputs[0].data(), 'o', 100);
    ASSERT_TRUE(FinishReferenceFile(module, file->get()).ok());
  }
  ASSERT_TRUE(SealMemoryFile(file->get()).ok());
  auto opened = OpenReferenceFile(module, file->get());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(std::string(opened->inputs[0].data(), 5000),
            std::string(5000, 'i'));
  EXPECT_EQ(std::string(opened->outputs[0].data(), 100), std::string(100, 'o'));
  EXPECT_EQ(opened->inputs[0].name(), "input A");
}

TEST(ReferenceFileTest, UnfinishedAndForeignFilesAreRefused) {
  const Module module = TwoTensors(5000, 100);
  auto file = CreateMemoryFile("reference");
  ASSERT_TRUE(CreateReferenceFile(module, file->get()).ok());
  EXPECT_EQ(OpenReferenceFile(module, file->get()).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(FinishReferenceFile(module, file->get()).ok());
  EXPECT_TRUE(OpenReferenceFile(module, file->get()).ok());
  // The same number of pages, but other tensors.
  EXPECT_FALSE(OpenReferenceFile(TwoTensors(5004, 100), file->get()).ok());
  EXPECT_FALSE(OpenReferenceFile(TwoTensors(50'000, 100), file->get()).ok());
}

}  // namespace
}  // namespace regatta
