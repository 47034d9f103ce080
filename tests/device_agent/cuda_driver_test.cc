// Run workers' CUDA over a driver that goes wrong (faulty_cuda.c), and launches
// that no driver gets to see.
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <iostream>
#include <limits>
#include <string>

#include "device_agent/run/cuda_device.h"
#include "device_agent/run/cuda_errors.h"
#include "device_agent/run/device_time.h"
#include "device_agent/run/launch_shape.h"
#include "gmock/gmock.h"
#include "tests/device_agent/cuda_ptx.h"
#include "tests/device_agent/cuda_support.h"
#include "tests/device_agent/runtime_by_hand.h"

namespace regatta {
namespace {

using testing::AddPtx;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TextOf;

// A process has one driver, so each of these is one of its own.
class FaultyCudaTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void Use(const char* fault) {
  setenv("FAULTY_CUDA", fault, 1);
  setenv("REGATTA_CUDA_SIM", "sm_80,sm_90", 1);
  cuda::UseDriver(REGATTA_FAULTY_CUDA);
}

[[noreturn]] void List(const char* fault) {
  Use(fault);
  const auto list = ListCudaDevices();
  std::cerr << list.status() << ":";
  if (list.ok()) {
    for (const v1::BoardDevice& device : list->devices()) {
      std::cerr << " " << device.selector() << "=" << device.architecture();
    }
    for (const std::string& error : list->errors()) std::cerr << "; " << error;
  }
  std::cerr << "." << std::endl;
  _exit(0);
}

TEST_F(FaultyCudaTest, ADeviceThatDoesNotAnswerLeavesTheOthersAsTheyAre) {
  EXPECT_EXIT(List(""), ::testing::ExitedWithCode(0),
              "^OK: 0=sm_80 1=sm_90\\.");
  EXPECT_EXIT(List("device"), ::testing::ExitedWithCode(0),
              "^OK: 1=sm_90; CUDA device 0: CUDA error \\(999\\)\\.");
}

TEST_F(FaultyCudaTest, ADriverThatDoesNotSayItsVersionIsNotUsed) {
  EXPECT_EXIT(List("version"), ::testing::ExitedWithCode(0),
              "^UNAVAILABLE: asking for the CUDA driver's version: CUDA error "
              "\\(999\\)");
  EXPECT_EXIT(List("no_version"), ::testing::ExitedWithCode(0),
              "^UNAVAILABLE: asking for the CUDA driver's version: it says 0");
}

class ByHand : public testing::RuntimeByHand {
 public:
  [[noreturn]] void Run(const char* fault) {
    Use(fault);
    Create(testing::Launched(testing::CudaModule(AddPtx()), {}), "0");
    int64_t elapsed_ns = 0;
    std::string said = failure();
    if (said.empty()) said = TextOf(runtime().Call());
    if (said.empty()) said = TextOf(runtime().TimeCalls(3, &elapsed_ns));
    if (said.empty()) said = elapsed_ns > 0 ? "timed" : "no time";
    std::cerr << said << std::endl;
    _exit(0);
  }
};

[[noreturn]] void SayOutcome(const char* fault) { ByHand().Run(fault); }

TEST_F(FaultyCudaTest, AnInvalidValueIsTheCandidatesInLaunchesAlone) {
  EXPECT_EXIT(SayOutcome(""), ::testing::ExitedWithCode(0), "^timed");
  EXPECT_EXIT(SayOutcome("alloc"), ::testing::ExitedWithCode(0),
              "^OUTCOME_DEVICE_FAULT: memory for input a .*INVALID_VALUE");
  EXPECT_EXIT(SayOutcome("launch"), ::testing::ExitedWithCode(0),
              "^OUTCOME_REFUSED: call 1, launching kernel add.*INVALID_VALUE");
}

TEST_F(FaultyCudaTest, TimesThatCannotBeRightAreTheDevicesFault) {
  for (const char* fault : {"nan", "negative", "zero"}) {
    EXPECT_EXIT(SayOutcome(fault), ::testing::ExitedWithCode(0),
                "^OUTCOME_DEVICE_FAULT: the driver's times cannot be right");
  }
}

TEST(DeviceTime, IsComparedWithTheHosts) {
  const auto text = [](double elapsed_ns, int64_t resolution_ns,
                       std::optional<int64_t> host_ns) {
    const MaybeFailure failed =
        CheckElapsed(elapsed_ns, resolution_ns, host_ns);
    return failed ? TextOf(failed) : "";
  };
  EXPECT_EQ(text(1e6, 1, 1'000'000), "");
  // Clocks that differ by a half, and a millisecond of grace.
  EXPECT_EQ(text(2.9e6, 1, 1'000'000), "");
  EXPECT_THAT(text(3.1e6, 1, 1'000'000), HasSubstr("the host waited 1000000"));
  EXPECT_EQ(text(3.1e6, 1, std::nullopt), "");
  // A short call may lie within one tick of a coarse clock.
  EXPECT_EQ(text(0, 1000, 199'000), "");
  EXPECT_THAT(text(0, 1000, 200'000), HasSubstr("calls took no time"));
  EXPECT_THAT(text(0, 1, std::nullopt), HasSubstr("calls took no time"));
  for (const double bad :
       {-1.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e19}) {
    EXPECT_THAT(text(bad, 1, std::nullopt), StartsWith("OUTCOME_DEVICE_FAULT"));
  }
  EXPECT_FALSE(CheckSpans({}).has_value());
  EXPECT_FALSE(CheckSpans({{5, 5}, {5, 9}, {8, 9}}).has_value());
  EXPECT_TRUE(CheckSpans({{5, 4}}).has_value());
  EXPECT_TRUE(CheckSpans({{5, 9}, {4, 9}}).has_value());
}

TEST(LaunchShape, IsCheckedBeforeItIsNarrowed) {
  const auto text = [](std::vector<int64_t> grid, std::vector<int64_t> group,
                       int64_t shared_bytes = 0) {
    LaunchShape shape;
    return TextOf(ReadShape({.entry = "k",
                             .arguments = {},
                             .grid = std::move(grid),
                             .group = std::move(group),
                             .shared_bytes = shared_bytes},
                            &shape));
  };
  EXPECT_EQ(text({3, 2}, {64, 4}, 100), "");
  EXPECT_EQ(text({}, {}),
            "OUTCOME_COMPILE_ERROR: kernel k has 0 dimensions of groups and 0 "
            "of threads");
  EXPECT_THAT(text({1, 1, 1, 1}, {1, 1, 1, 1}), HasSubstr("4 dimensions"));
  EXPECT_THAT(text({1, 1}, {1}), HasSubstr("2 dimensions of groups and 1 of"));
  constexpr int64_t kWrapped = (int64_t{1} << 32) + 64;
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, kWrapped}) {
    EXPECT_EQ(text({1, bad}, {1, 1}),
              "OUTCOME_COMPILE_ERROR: kernel k has an extent of " +
                  std::to_string(bad) + " in dimension 1");
    EXPECT_THAT(text({1}, {bad}), HasSubstr("in dimension 0"));
  }
  // 2^64 threads of a group.
  constexpr int64_t kLarge = int64_t{1} << 30;
  EXPECT_THAT(text({1, 1, 1}, {kLarge, kLarge, 16}),
              StartsWith("OUTCOME_REFUSED: kernel k has groups of more than"));
  EXPECT_THAT(text({1}, {1}, -1),
              StartsWith("OUTCOME_COMPILE_ERROR: kernel k has -1 bytes"));
  EXPECT_THAT(text({1}, {1}, kWrapped),
              StartsWith("OUTCOME_REFUSED: kernel k has 4294967360 bytes"));
}

TEST(CudaErrors, AnInvalidValueDependsOnWhatWasAsked) {
  using cuda::Asked;
  using cuda::OutcomeOf;
  EXPECT_EQ(OutcomeOf(cuda::kInvalidValue), v1::OUTCOME_DEVICE_FAULT);
  EXPECT_EQ(OutcomeOf(cuda::kInvalidValue, Asked::kLaunch),
            v1::OUTCOME_REFUSED);
  for (const Asked asked : {Asked::kAnything, Asked::kLaunch}) {
    EXPECT_EQ(OutcomeOf(cuda::kIllegalAddress, asked), v1::OUTCOME_CRASHED);
    EXPECT_EQ(OutcomeOf(cuda::kOutOfMemory, asked), v1::OUTCOME_OUT_OF_MEMORY);
  }
}

}  // namespace
}  // namespace regatta
