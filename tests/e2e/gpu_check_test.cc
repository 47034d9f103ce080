// deploy/gpu-check where there is no GPU: it says so, and its simulated run
// goes through everything but the GPU itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/libraries.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const char kScript[] = REGATTA_SOURCE_DIR "/deploy/gpu-check";
const char kBin[] = REGATTA_PROGRAM_DIR;

TEST(GpuCheck, WithoutAGpuItSaysSoBeforeItBuildsAnything) {
  if (HasLibrary({"libcuda.so.1"})) {
    GTEST_SKIP() << "this machine has a CUDA driver";
  }
  TempDir dir;
  const ProcessResult result = RunProcess(
      {"python3", kScript, "--output", dir.path() + "/report.md"}, {});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("no GPU: no CUDA driver"));
  EXPECT_THAT(result.err, HasSubstr("nothing was built"));
  EXPECT_FALSE(std::filesystem::exists(dir.path() + "/report.md"));
}

TEST(GpuCheck, AFolderWithoutItsProgramsIsWrongUsage) {
  TempDir dir;
  const ProcessResult result =
      RunProcess({"python3", kScript, "--simulated", "--bin", dir.path()}, {});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("lacks regatta"));
}

TEST(GpuCheck, ASimulatedRunComparesTunesAndReports) {
  if (const std::string missing = MissingNvrtc(); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  TempDir dir;
  const std::string report = dir.path() + "/report.md";
  const ProcessResult result = RunProcess(
      {"python3", kScript, "--simulated", "--bin", kBin, "--output", report},
      {}, absl::Seconds(200));
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const std::string text = ReadFile(report);
  EXPECT_THAT(result.out, HasSubstr(text));
  EXPECT_THAT(text, HasSubstr("| part "));
  EXPECT_THAT(text, ContainsRegex("bits .*matmul.m=32,n=32,k=32,dtype=f16"));
  EXPECT_THAT(text, HasSubstr("equal: 0 of 1024 elements"));
  EXPECT_THAT(text,
              ContainsRegex("tuning .*simulated-cuda-sm_80.*4 candidates"));
  EXPECT_THAT(text, Not(HasSubstr("Failed:")));
  EXPECT_THAT(text, Not(HasSubstr("Skipped:")));
}

// Time that is used up is no failure of what ran.
TEST(GpuCheck, PartsThatDoNotFitIntoTheLimitAreNamed) {
  TempDir dir;
  const ProcessResult result =
      RunProcess({"python3", kScript, "--simulated", "--bin", kBin, "--limit",
                  "0", "--output", dir.path() + "/report.md"},
                 {});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.out, HasSubstr("* bits: the limit of 0"));
  EXPECT_THAT(result.out, HasSubstr("* tuning: the limit of 0"));
}

}  // namespace
}  // namespace regatta::testing
