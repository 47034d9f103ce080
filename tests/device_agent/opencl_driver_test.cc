// Run workers' OpenCL over a driver that goes wrong (fake_opencl.c): whose each
// fault is, and what becomes of the devices that are well.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "device_agent/run/opencl_device.h"
#include "device_agent/run/opencl_errors.h"
#include "gmock/gmock.h"
#include "tests/device_agent/runtime_by_hand.h"
#include "tests/support/process.h"

namespace regatta {
namespace {

using testing::ModuleBuilder;
using testing::TextOf;

// The loader is found by its name when a process starts, so each of these is a
// process of its own.
class OpenClDriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    setenv("LD_LIBRARY_PATH", REGATTA_FAKE_OPENCL, 1);
  }
  void TearDown() override { unsetenv("LD_LIBRARY_PATH"); }
};

[[noreturn]] void List(const char* fault) {
  setenv("FAKE_OPENCL", fault, 1);
  const auto list = ListOpenClDevices();
  std::cerr << list.status() << ":";
  if (list.ok()) {
    for (const v1::BoardDevice& device : list->devices()) {
      std::cerr << " " << device.selector() << "=" << device.name();
    }
    for (const std::string& error : list->errors()) std::cerr << "; " << error;
  }
  std::cerr << "." << std::endl;
  _exit(0);
}

TEST_F(OpenClDriverTest, APlatformThatFailsLeavesTheOthersAsTheyAre) {
  EXPECT_EXIT(List(""), ::testing::ExitedWithCode(0),
              "^OK: 0/0=Fake 0 1/0=Fake 1\\.");
  EXPECT_EXIT(List("platform"), ::testing::ExitedWithCode(0),
              "^OK: 1/0=Fake 1; platform 0 \\(First\\): listing devices: "
              "CL_OUT_OF_HOST_MEMORY \\(-6\\)\\.");
}

[[noreturn]] void Find(const char* fault, const std::string& selector) {
  setenv("FAKE_OPENCL", fault, 1);
  std::cerr << opencl::FindDevice(selector).status() << std::endl;
  _exit(0);
}

TEST_F(OpenClDriverTest, ADeviceOfAFailedPlatformIsMissedWithTheReason) {
  EXPECT_EXIT(Find("platform", "1/0"), ::testing::ExitedWithCode(0), "^OK");
  EXPECT_EXIT(Find("platform", "0/0"), ::testing::ExitedWithCode(0),
              "^NOT_FOUND: OpenCL device 0/0 is not there; 1 others are; "
              "platform 0 \\(First\\).*-6");
}

TEST_F(OpenClDriverTest, ALoaderThatLacksAFunctionIsSaidToDoSo) {
  const testing::TempDir dir;
  std::filesystem::create_symlink(REGATTA_PLANTED_LIBRARY,
                                  dir.path() + "/libOpenCL.so.1");
  setenv("LD_LIBRARY_PATH", dir.path().c_str(), 1);
  EXPECT_EXIT(List(""), ::testing::ExitedWithCode(0),
              "^FAILED_PRECONDITION: older than OpenCL 1.2: libOpenCL.so.1 "
              "lacks clGetPlatformIDs");
}

TEST_F(OpenClDriverTest, ALoaderThatCannotBeLoadedIsSaidWithTheReason) {
  const testing::TempDir dir;
  testing::WriteFile(dir.path() + "/libOpenCL.so.1", "text");
  setenv("LD_LIBRARY_PATH", dir.path().c_str(), 1);
  EXPECT_EXIT(List(""), ::testing::ExitedWithCode(0),
              "^FAILED_PRECONDITION: libOpenCL.so.1 cannot be loaded: ");
}

// What the runtime says of two calls and the time of 600, more than are in
// flight at once, of a module of two launches.
class ByHand : public testing::RuntimeByHand {
 public:
  [[noreturn]] void Run(const std::string& fault) {
    setenv("FAKE_OPENCL", fault.c_str(), 1);
    ModuleBuilder builder("source", "opencl");
    const int a = builder.Buffer(BufferRole::kInput, "a", testing::kElements);
    const int b = builder.Buffer(BufferRole::kInput, "b", testing::kElements);
    const int c = builder.Buffer(BufferRole::kOutput, "c", testing::kElements);
    for (int i = 0; i < 2; ++i) {
      builder.Launch("add", {a, b, c}, {testing::kElements / 64}, {64});
    }
    Create(builder, "0/0");
    int64_t elapsed_ns = 0;
    std::string said = failure();
    const auto add = [&](const MaybeFailure& failed) {
      if (said.empty() && failed) said = TextOf(failed);
    };
    for (int i = 0; i < 2; ++i) {
      if (said.empty()) add(runtime().Call());
    }
    if (said.empty()) add(runtime().TimeCalls(600, &elapsed_ns));
    if (said.empty()) {
      std::vector<const void*> outputs;
      add(runtime().ReadOutputs(&outputs));
    }
    std::cerr << (said.empty() ? absl::StrCat(elapsed_ns, " ns") : said)
              << std::endl;
    _exit(0);
  }
};

[[noreturn]] void SayOutcome(const std::string& fault) { ByHand().Run(fault); }

TEST_F(OpenClDriverTest, ADriverThatIsWellTimesCalls) {
  // Of each call from the start of its first to the end of its last launch.
  EXPECT_EXIT(SayOutcome(""), ::testing::ExitedWithCode(0), "^180000 ns");
}

TEST_F(OpenClDriverTest, TimesThatCannotBeRightAreTheDevicesFault) {
  EXPECT_EXIT(SayOutcome("times=backwards"), ::testing::ExitedWithCode(0),
              "^OUTCOME_DEVICE_FAULT: the driver's times cannot be right: a "
              "call started at [0-9]+ ns and ended at");
  EXPECT_EXIT(SayOutcome("times=unordered"), ::testing::ExitedWithCode(0),
              "^OUTCOME_DEVICE_FAULT: the driver's times cannot be right: a "
              "call started at [0-9]+ ns");
  EXPECT_EXIT(SayOutcome("times=zero"), ::testing::ExitedWithCode(0),
              "^OUTCOME_DEVICE_FAULT: .*calls took no time");
  EXPECT_EXIT(SayOutcome("times=absurd"), ::testing::ExitedWithCode(0),
              "^OUTCOME_DEVICE_FAULT: .*but the host waited");
}

TEST_F(OpenClDriverTest, ALaunchThatIsNeverTakenIsRefused) {
  EXPECT_EXIT(SayOutcome("launch=1:-5"), ::testing::ExitedWithCode(0),
              "^OUTCOME_REFUSED: call 1, launching kernel add: "
              "CL_OUT_OF_RESOURCES");
  // While the first runs, which ends well.
  EXPECT_EXIT(SayOutcome("launch=2:-54"), ::testing::ExitedWithCode(0),
              "^OUTCOME_REFUSED: call 1, launching kernel add: "
              "CL_INVALID_WORK_GROUP_SIZE");
}

TEST_F(OpenClDriverTest, ALaunchThatWasTakenBeforeIsNotRefusedLater) {
  // In the second call, and among 600.
  for (const int launch : {3, 4, 5, 500, 1100}) {
    EXPECT_EXIT(SayOutcome(absl::StrCat("launch=", launch, ":-5")),
                ::testing::ExitedWithCode(0),
                "^OUTCOME_DEVICE_FAULT: call [0-9]+, launching kernel add: "
                "CL_OUT_OF_RESOURCES");
  }
}

TEST_F(OpenClDriverTest, AKernelThatFailsWhileOthersAreLaunchedCrashed) {
  // The queue is dead then, and says so to the next launch.
  for (const int launch : {1, 2, 3, 5, 300, 1027, 1204}) {
    for (const int code : {-5, -14, -36, -9999}) {
      EXPECT_EXIT(SayOutcome(absl::StrCat("fault=", launch, ":", code)),
                  ::testing::ExitedWithCode(0),
                  absl::StrCat("^OUTCOME_CRASHED: call [0-9]+: .*", code));
    }
    if (launch > 5) continue;
    EXPECT_EXIT(SayOutcome(absl::StrCat("fault=", launch, ":-2")),
                ::testing::ExitedWithCode(0),
                "^OUTCOME_DEVICE_FAULT: call [0-9]: CL_DEVICE_NOT_AVAILABLE");
  }
}

TEST_F(OpenClDriverTest, ResultsThatCannotBeReadAreTheDevicesFault) {
  EXPECT_EXIT(SayOutcome("read=-5"), ::testing::ExitedWithCode(0),
              "^OUTCOME_DEVICE_FAULT: output c: CL_OUT_OF_RESOURCES");
}

TEST(OpenClErrors, TheSameCodeIsSomebodyElsesAtAnotherStep) {
  using opencl::OutcomeOf;
  using opencl::Step;
  struct Row {
    int32_t error;
    Step step;
    v1::Outcome outcome;
  };
  const Row rows[] = {{-5, Step::kDevice, v1::OUTCOME_DEVICE_FAULT},
                      {-5, Step::kCode, v1::OUTCOME_REFUSED},
                      {-5, Step::kBuffers, v1::OUTCOME_OUT_OF_MEMORY},
                      {-5, Step::kLaunch, v1::OUTCOME_REFUSED},
                      {-5, Step::kRun, v1::OUTCOME_CRASHED},
                      {-36, Step::kLaunch, v1::OUTCOME_DEVICE_FAULT},
                      {-36, Step::kRun, v1::OUTCOME_CRASHED},
                      {-6, Step::kDevice, v1::OUTCOME_DEVICE_FAULT},
                      {-6, Step::kBuffers, v1::OUTCOME_OUT_OF_MEMORY},
                      {-11, Step::kCode, v1::OUTCOME_COMPILE_ERROR},
                      {-54, Step::kLaunch, v1::OUTCOME_REFUSED},
                      {-54, Step::kRun, v1::OUTCOME_DEVICE_FAULT},
                      {-2, Step::kRun, v1::OUTCOME_DEVICE_FAULT},
                      {-12345, Step::kRun, v1::OUTCOME_DEVICE_FAULT}};
  for (const Row& row : rows) {
    EXPECT_EQ(OutcomeOf(row.error, row.step), row.outcome)
        << row.error << " at step " << static_cast<int>(row.step);
  }
  EXPECT_FALSE(opencl::FailureOf(0, Step::kRun, "x").has_value());
}

}  // namespace
}  // namespace regatta
