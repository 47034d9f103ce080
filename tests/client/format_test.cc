#include "client/cli/format.h"

#include <gtest/gtest.h>

namespace regatta::cli {
namespace {

TEST(FormatNs, PicksTheUnitAndFourDigits) {
  EXPECT_EQ(FormatNs(-1), "unknown");
  EXPECT_EQ(FormatNs(0), "unknown");
  EXPECT_EQ(FormatNs(1), "1 ns");
  EXPECT_EQ(FormatNs(999), "999 ns");
  EXPECT_EQ(FormatNs(1'000), "1.000 us");
  EXPECT_EQ(FormatNs(12'345), "12.35 us");
  EXPECT_EQ(FormatNs(2'500'000), "2.500 ms");
  EXPECT_EQ(FormatNs(1'234'567'890), "1.235 s");
  EXPECT_EQ(FormatNs(123'456'000'000'000), "123456 s");
}

TEST(FormatSpan, SpeaksOfTheTwoLargestUnits) {
  EXPECT_EQ(FormatSpan(-1), "unknown");
  EXPECT_EQ(FormatSpan(0), "0 ms");
  EXPECT_EQ(FormatSpan(999), "999 ms");
  EXPECT_EQ(FormatSpan(59'999), "59 s");
  EXPECT_EQ(FormatSpan(123'000), "2 min 3 s");
  EXPECT_EQ(FormatSpan(3'600'000 + 1'800'000), "1 h 30 min");
  EXPECT_EQ(FormatSpan(2 * 86'400'000ll + 3 * 3'600'000), "2 d 3 h");
}

TEST(FormatRates, NameTheirUnits) {
  EXPECT_EQ(FormatFlopRate(103.25e9), "103.2 GFLOP/s");
  EXPECT_EQ(FormatFlopRate(2.5e12), "2.500 TFLOP/s");
  EXPECT_EQ(FormatByteRate(8.414e9), "8.414 GB/s");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.500 KiB");
  EXPECT_EQ(FormatBytes(int64_t{3} << 30), "3.000 GiB");
}

TEST(FormatSpeedup, SaysWhenThereIsNoInterval) {
  EXPECT_EQ(FormatSpeedup(0, 0, 0), "unknown");
  EXPECT_EQ(FormatSpeedup(1.84, 1.79, 1.9),
            "1.84x (95 % interval 1.79x to 1.90x)");
  EXPECT_EQ(FormatSpeedup(2, 0, 0), "2.00x (screening only, no interval)");
}

v1::TaskStatus Task(double flops, double bytes, double peak, double bandwidth) {
  v1::TaskStatus task;
  task.set_flops(flops);
  task.set_bytes(bytes);
  task.set_peak_flops_per_s(peak);
  task.set_bandwidth_bytes_per_s(bandwidth);
  return task;
}

TEST(FormatAchieved, IsAShareOfWhatBindsTheWorkload) {
  // 2e9 operations and 1e6 bytes in 40 ms: 50 GFLOP/s of 100.
  EXPECT_EQ(FormatAchieved(Task(2e9, 1e6, 100e9, 10e9), 40'000'000),
            "50.00 GFLOP/s (50 % of the measured peak)");
  // 1e6 operations and 8e6 bytes in 1 ms: 8 GB/s of 10, 1 GFLOP/s of 100.
  EXPECT_EQ(FormatAchieved(Task(1e6, 8e6, 100e9, 10e9), 1'000'000),
            "8.000 GB/s (80 % of the measured memory bandwidth)");
}

TEST(FormatAchieved, WithoutMeasuredPeaksThereIsNoShare) {
  EXPECT_EQ(FormatAchieved(Task(2e9, 1e6, 0, 0), 40'000'000), "50.00 GFLOP/s");
  EXPECT_EQ(FormatAchieved(Task(1e6, 8e6, 0, 0), 1'000'000), "8.000 GB/s");
  EXPECT_EQ(FormatAchieved(Task(1e6, 8e6, 0, 0), 0), "unknown");
}

TEST(FormatTable, AlignsColumnsWithoutTrailingBlanks) {
  EXPECT_EQ(FormatTable({{"A", "LONG", "C"}, {"xyz", "1", ""}}),
            "A    LONG  C\n"
            "xyz  1\n");
}

TEST(FormatTable, TextFromElsewhereCannotBreakRowsOrSteerTheTerminal) {
  EXPECT_EQ(FormatTable({{"H"}, {"a\nb\x1b[2J"}}), "H\na\\nb\\x1b[2J\n");
}

TEST(FitColumn, CutsOneColumnToTheWidthAndNoFurtherThanTwelve) {
  const std::vector<std::vector<std::string>> rows = {
      {"JOB", "WORKLOAD", "NAME"}, {"1", std::string(100, 'w'), "nightly"}};
  for (const size_t width : {200, 80, 40, 10}) {
    auto fitted = rows;
    FitColumn(&fitted, 1, width);
    const size_t room = width == 200 ? 100 : width == 10 ? 12 : width - 14;
    EXPECT_EQ(fitted[1][1].size(), room) << width;
    EXPECT_EQ(fitted[1][2], "nightly");
  }
}

}  // namespace
}  // namespace regatta::cli
