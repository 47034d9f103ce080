// Hand-written PTX through the CUDA runtime of run workers, over the simulated
// driver.
#include "device_agent/run/cuda_runtime.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <iostream>

#include "device_agent/run/cuda_errors.h"
#include "device_agent/run/cuda_module.h"
#include "device_agent/run/cuda_probe.h"
#include "gmock/gmock.h"
#include "tests/device_agent/cuda_ptx.h"
#include "tests/device_agent/cuda_support.h"
#include "tests/device_agent/runtime_by_hand.h"

namespace regatta {
namespace {

using testing::AddPtx;
using ::testing::AllOf;
using testing::CudaModule;
using ::testing::HasSubstr;
using testing::HostTensors;
using testing::ModuleBuilder;
using ::testing::StartsWith;
using testing::TextOf;

// One launch of the kernel "add".
ModuleBuilder Adding(const std::string& ptx, int64_t shared_bytes = 0) {
  return testing::Launched(CudaModule(ptx), {.shared_bytes = shared_bytes});
}

class CudaRuntimeTest : public testing::CudaTest,
                        protected testing::RuntimeByHand {
 protected:
  void Create(const ModuleBuilder& builder, int64_t evict_bytes = 0) {
    RuntimeByHand::Create(builder, device_.selector(), evict_bytes);
  }
};

TEST_F(CudaRuntimeTest, TheListedDeviceIsTheSimulatedOne) {
  EXPECT_EQ(device_.kind(), "cuda");
  EXPECT_EQ(device_.selector(), "0");
  EXPECT_EQ(device_.name(), "Simulated sm_80");
  EXPECT_EQ(device_.architecture(), "sm_80");
  EXPECT_TRUE(device_.simulated());
  EXPECT_EQ(device_.driver_version(), "driver of CUDA 13.0");
  EXPECT_EQ(device_.driver_major(), 13);
  EXPECT_EQ(device_.compute_units(), 108);
  EXPECT_EQ(device_.max_group(), 1024);
  EXPECT_EQ(device_.local_bytes(), 163 << 10);
  EXPECT_EQ(device_.subgroup(), 32);
  EXPECT_EQ(device_.cache_bytes(), 40 << 20);
}

TEST_F(CudaRuntimeTest, BytesThatAreNoBinaryAreTheCandidates) {
  Create(ModuleBuilder("no binary at all", "cuda"));
  EXPECT_THAT(failure(), StartsWith("OUTCOME_COMPILE_ERROR"));
}

TEST_F(CudaRuntimeTest, SharedMemoryOfABlockIsKeptToTheDevices) {
  Create(Adding(AddPtx(), 164 << 10));
  EXPECT_THAT(failure(), AllOf(StartsWith("OUTCOME_REFUSED"),
                               HasSubstr("167936"), HasSubstr("166912")));
  // More than a launch gets without leave, and all that there is.
  Create(Adding(AddPtx(), 163 << 10));
  ASSERT_EQ(failure(), "");
  EXPECT_EQ(TextOf(runtime().Call()), "");
  EXPECT_EQ(Output()[9], 36);
}

TEST_F(CudaRuntimeTest, TimesAreTheDevicesClockAndGrowWithTheCalls) {
  Create(Adding(AddPtx()));
  ASSERT_EQ(TextOf(runtime().Call()), "");
  const int64_t one = TimeOf(1);
  EXPECT_GE(one, 2000);  // a launch
  EXPECT_EQ(TimeOf(1), one);
  EXPECT_NEAR(static_cast<double>(TimeOf(1000)), 1000.0 * one, 1000);
}

TEST_F(CudaRuntimeTest, EvictionLeavesTimesAlone) {
  Create(Adding(AddPtx()), /*evict_bytes=*/1 << 20);
  ASSERT_EQ(TextOf(runtime().Evict()), "");
  const int64_t once = TimeOf(1);
  ASSERT_EQ(TextOf(runtime().Evict()), "");
  EXPECT_EQ(TimeOf(1), once);
}

TEST_F(CudaRuntimeTest, TheProbeFindsTheModelsPeakAndBandwidth) {
  const auto report = ProbeCudaDevice(device_.selector());
  ASSERT_TRUE(report.ok()) << report.status();
  // 108 processors, 64 multiply-adds a cycle each, 1.41 GHz: 19.5 Tflop/s, of
  // which the loop around the multiply-adds takes a few percent.
  EXPECT_GT(report->peak_flops_per_s(), 0.85 * 19.5e12);
  EXPECT_LT(report->peak_flops_per_s(), 1.0 * 19.5e12);
  // 1555 GB/s, less launches.
  EXPECT_GT(report->bandwidth_bytes_per_s(), 0.8 * 1555e9);
  EXPECT_LE(report->bandwidth_bytes_per_s(), 1555e9);
  EXPECT_EQ(report->noise_floor(), 0);
}

// A dead context stays dead, so each of these is a process of its own.
class CudaFaultTest : public CudaRuntimeTest {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  // In the child: what a call with `more` behind the addition says, twice.
  [[noreturn]] void CallTwice(const std::string& more) {
    CudaRuntimeTest::SetUp();
    Create(Adding(AddPtx(more)));
    std::cerr << failure() << TextOf(runtime().Call()) << " | "
              << TextOf(runtime().Call()) << " | "
              << PrepareCudaDevice(device_.selector()) << std::endl;
    _exit(0);
  }
};

TEST_F(CudaFaultTest, AnIllegalAddressIsACrashAndTheContextIsDead) {
  EXPECT_EXIT(
      CallTwice("  mov.u64 %rd20, 16;\n  st.global.f32 [%rd20], %f1;\n"),
      ::testing::ExitedWithCode(0),
      "OUTCOME_CRASHED: call 1: CUDA_ERROR_ILLEGAL_ADDRESS \\(700\\).*"
      "simulator says: global_out_of_bounds.*"
      "\\| OUTCOME_CRASHED: call 2, launching kernel add: "
      "CUDA_ERROR_ILLEGAL_ADDRESS.*\\| UNAVAILABLE: the context is not usable");
}

TEST_F(CudaFaultTest, ATrapIsACrash) {
  EXPECT_EXIT(CallTwice("  trap;\n"), ::testing::ExitedWithCode(0),
              "OUTCOME_CRASHED: call 1: CUDA_ERROR_LAUNCH_FAILED");
}

// Death tests run in a process without any driver loaded yet.
[[noreturn]] void ListWith(const char* driver, const char* gpus) {
  setenv("REGATTA_CUDA_SIM", gpus, 1);
  cuda::UseDriver(driver);
  const auto devices = ListCudaDevices();
  std::cerr << devices.status() << ":";
  if (devices.ok()) {
    for (const auto& device : devices->devices()) {
      std::cerr << " " << device.selector() << "=" << device.architecture();
    }
  }
  std::cerr << "." << std::endl;
  _exit(0);
}

class CudaDriverTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(CudaDriverTest, SeveralDevicesAreListedInOrder) {
  EXPECT_EXIT(ListWith(testing::kCudaSim, "sm_90,sm_75"),
              ::testing::ExitedWithCode(0), "OK: 0=sm_90 1=sm_75\\.");
}

TEST_F(CudaDriverTest, AGpuThatNobodySimulatesIsSaidWithThoseThereAre) {
  EXPECT_EXIT(ListWith(testing::kCudaSim, "sm_81"),
              ::testing::ExitedWithCode(0),
              "UNAVAILABLE: the CUDA driver does not start.*no simulated GPU "
              "sm_81; there are sm_75");
}

TEST_F(CudaDriverTest, AFileThatIsNoDriverIsSaid) {
  EXPECT_EXIT(ListWith("/nowhere/libcuda.so.1", ""),
              ::testing::ExitedWithCode(0),
              "FAILED_PRECONDITION: the CUDA driver that was named: there is "
              "no /nowhere/libcuda.so.1");
  EXPECT_EXIT(ListWith("libm.so.6", ""), ::testing::ExitedWithCode(0),
              "FAILED_PRECONDITION: the library is no CUDA driver: it has no "
              "cuInit");
}

// NVIDIA's own library for linking has every function that is asked for.
TEST_F(CudaDriverTest, AStubForLinkingIsSaidToBeOne) {
  std::string stub;
  for (const char* path : {"/usr/local/cuda/lib64/stubs/libcuda.so",
                           "/usr/local/cuda/lib/stubs/libcuda.so",
                           "/usr/local/cuda-13.0/lib/stubs/libcuda.so"}) {
    if (stub.empty() && access(path, R_OK) == 0) stub = path;
  }
  if (stub.empty()) GTEST_SKIP() << "no CUDA toolkit with a stub here";
  EXPECT_EXIT(ListWith(stub.c_str(), ""), ::testing::ExitedWithCode(0),
              "UNAVAILABLE: the CUDA driver does not start: .*34.*it is a stub "
              "for linking: install NVIDIA's driver");
}

TEST_F(CudaDriverTest, WithoutADriverThereAreNoDevices) {
  if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    dlclose(driver);
    GTEST_SKIP() << "a CUDA driver is installed here";
  }
  EXPECT_EXIT(ListWith("", ""), ::testing::ExitedWithCode(0), "OK:\\.");
}

// On a GPU in the host's memory nothing is copied: the outputs are read where
// the kernel wrote them.
[[noreturn]] void RunShared() {
  setenv("REGATTA_CUDA_SIM", "sm_87", 1);
  cuda::UseDriver(testing::kCudaSim);
  RuntimeOptions options;
  options.clock = &RealClock();
  const ModuleBuilder builder = Adding(AddPtx());
  RuntimeOrFailure created = CreateRuntime(builder.module(), options);
  std::vector<std::vector<double>> values(
      2, std::vector<double>(testing::kElements, 21));
  const std::vector<GuardedMemory> inputs = HostTensors(values);
  std::vector<const void*> first, second;
  std::cerr << TextOf(created.failure)
            << TextOf(created.runtime->SetInputs(inputs))
            << TextOf(created.runtime->Poison(0xFF))
            << TextOf(created.runtime->ReadOutputs(&first))
            << TextOf(created.runtime->Call());
  // Without being read again.
  std::cerr << "c="
            << ReadValues(first[0], testing::kElements, DType::kF32)[200];
  std::string damage;
  created.runtime->FindDamage(&damage);
  std::cerr << TextOf(created.runtime->ReadOutputs(&second)) << damage
            << (first == second ? " same" : " other") << std::endl;
  _exit(0);
}

TEST_F(CudaDriverTest, AGpuInTheHostsMemoryNeedsNoCopies) {
  EXPECT_EXIT(RunShared(), ::testing::ExitedWithCode(0), "^c=42 same");
}

TEST(CudaModuleTest, CodeRunsOnItsOwnGenerationFromItsVersionOn) {
  using cuda::RunsOn;
  EXPECT_TRUE(RunsOn("sm_80", 80));
  EXPECT_TRUE(RunsOn("sm_80", 86));
  EXPECT_FALSE(RunsOn("sm_86", 80));
  EXPECT_FALSE(RunsOn("sm_80", 90));
  EXPECT_TRUE(RunsOn("sm_100", 103));
  EXPECT_FALSE(RunsOn("sm_100", 110));
  EXPECT_TRUE(RunsOn("sm_90a", 90));
  EXPECT_FALSE(RunsOn("sm_100a", 103));
  EXPECT_FALSE(RunsOn("", 80));
}

TEST(CudaErrorsTest, EveryErrorIsSomebodys) {
  using cuda::OutcomeOf;
  const std::pair<cuda::Result, v1::Outcome> rows[] = {
      {cuda::kOutOfMemory, v1::OUTCOME_OUT_OF_MEMORY},
      {cuda::kLaunchOutOfResources, v1::OUTCOME_REFUSED},
      {cuda::kInvalidPtx, v1::OUTCOME_COMPILE_ERROR},
      {cuda::kNotFound, v1::OUTCOME_COMPILE_ERROR},
      {cuda::kLaunchTimeout, v1::OUTCOME_TIMED_OUT},
      {cuda::kIllegalAddress, v1::OUTCOME_CRASHED},
      {cuda::kIllegalInstruction, v1::OUTCOME_CRASHED},
      {cuda::kAssert, v1::OUTCOME_CRASHED},
      // The driver's or the machine's own.
      {cuda::kUnsupportedPtxVersion, v1::OUTCOME_DEVICE_FAULT},
      {cuda::kDeviceUnavailable, v1::OUTCOME_DEVICE_FAULT},
      {214 /* uncorrectable memory */, v1::OUTCOME_DEVICE_FAULT},
      {999 /* unknown */, v1::OUTCOME_DEVICE_FAULT}};
  for (const auto& [error, outcome] : rows) {
    EXPECT_EQ(OutcomeOf(error), outcome) << error;
  }
}

}  // namespace
}  // namespace regatta
