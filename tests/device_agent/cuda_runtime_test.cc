// Hand-written PTX through the CUDA runtime of run workers, over the simulated
// driver.
#include "device_agent/run/cuda_runtime.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <iostream>

#include "base/clock.h"
#include "device_agent/run/cuda_errors.h"
#include "device_agent/run/cuda_module.h"
#include "device_agent/run/cuda_probe.h"
#include "device_agent/run/runtime_list.h"
#include "gmock/gmock.h"
#include "tests/device_agent/cuda_ptx.h"
#include "tests/device_agent/cuda_support.h"

namespace regatta {
namespace {

using testing::AddPtx;
using ::testing::AllOf;
using testing::CudaModule;
using ::testing::HasSubstr;
using testing::HostTensors;
using testing::ModuleBuilder;
using testing::PtxHead;
using testing::PtxKernel;
using ::testing::StartsWith;
using testing::TextOf;

constexpr int64_t kElements = 256;

// c = a + b of kElements, by one launch of `entry` with blocks of 64.
ModuleBuilder Binary(const std::string& ptx, const std::string& entry = "add",
                     int64_t shared_bytes = 0, int64_t block = 64) {
  ModuleBuilder builder = CudaModule(ptx);
  const int a = builder.Buffer(BufferRole::kInput, "a", kElements);
  const int b = builder.Buffer(BufferRole::kInput, "b", kElements);
  const int c = builder.Buffer(BufferRole::kOutput, "c", kElements);
  builder.Launch(entry, {a, b, c}, {kElements / 64}, {block}, shared_bytes);
  return builder;
}

// What a run worker does with a runtime, by hand.
class CudaRuntimeTest : public testing::CudaTest {
 protected:
  // a[i] = i, b[i] = 3 i.
  static std::vector<GuardedMemory> Inputs() {
    std::vector<std::vector<double>> tensors(2);
    for (int i = 0; i < kElements; ++i) {
      tensors[0].push_back(i);
      tensors[1].push_back(3 * i);
    }
    return HostTensors(tensors);
  }
  void Create(const Module& module, int64_t evict_bytes = 0) {
    RuntimeOptions options;
    options.clock = &RealClock();
    options.device = device_.selector();
    options.evict_bytes = evict_bytes;
    created_ = CreateRuntime(module, options);
    if (created_.runtime == nullptr) return;
    ASSERT_EQ(TextOf(runtime().SetInputs(inputs_)), "");
    ASSERT_TRUE(runtime().Tighten().ok());
    ASSERT_EQ(TextOf(runtime().Poison(0xFF)), "");
  }
  ModuleRuntime& runtime() { return *created_.runtime; }
  std::vector<double> Output(int64_t elements = kElements) {
    std::vector<const void*> outputs;
    EXPECT_EQ(TextOf(runtime().ReadOutputs(&outputs)), "");
    return ReadValues(outputs.at(0), static_cast<size_t>(elements),
                      DType::kF32);
  }
  std::string Damage() {
    std::string damage;
    EXPECT_EQ(TextOf(runtime().FindDamage(&damage)), "");
    return damage;
  }
  int64_t TimeOf(int64_t calls) {
    int64_t elapsed_ns = 0;
    EXPECT_EQ(TextOf(runtime().TimeCalls(calls, &elapsed_ns)), "");
    return elapsed_ns;
  }

  std::vector<GuardedMemory> inputs_ = Inputs();
  RuntimeOrFailure created_;
};

TEST_F(CudaRuntimeTest, ListedDevicesHaveNamesAndLimits) {
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
  EXPECT_GT(device_.memory_bytes(), 1 << 20);
  const v1::DeviceList again = ListDevices({"cuda"});
  EXPECT_EQ(again.errors_size(), 0);
  ASSERT_EQ(again.devices_size(), 1);
  EXPECT_EQ(again.devices(0).SerializeAsString(), device_.SerializeAsString());
}

TEST_F(CudaRuntimeTest, AKernelReadsItsInputsAndWritesItsOutput) {
  const ModuleBuilder builder = Binary(AddPtx());
  Create(builder.module());
  ASSERT_EQ(TextOf(created_.failure), "");
  ASSERT_EQ(TextOf(runtime().Call()), "");
  const std::vector<double> c = Output();
  for (int i = 0; i < kElements; ++i) EXPECT_EQ(c[i], 4 * i) << i;
  EXPECT_EQ(Damage(), "");
}

TEST_F(CudaRuntimeTest, KernelsOfASequenceRunInOrderThroughTheWorkspace) {
  ModuleBuilder builder = CudaModule(
      PtxHead() +
      PtxKernel("square", 2,
                "  ld.global.f32 %f1, [%rd11];\n  mul.f32 %f1, %f1, %f1;\n"
                "  st.global.f32 [%rd12], %f1;\n") +
      // c[i] = w[255 - i]
      PtxKernel("reverse", 2,
                "  sub.s32 %r11, 255, %r1;\n  mul.wide.s32 %rd20, %r11, 4;\n"
                "  add.s64 %rd21, %rd1, %rd20;\n"
                "  ld.global.f32 %f1, [%rd21];\n"
                "  st.global.f32 [%rd12], %f1;\n"));
  const int a = builder.Buffer(BufferRole::kInput, "a", kElements);
  builder.Buffer(BufferRole::kInput, "b", kElements);
  const int c = builder.Buffer(BufferRole::kOutput, "c", kElements);
  const int w = builder.Buffer(BufferRole::kWorkspace, "w", kElements);
  builder.Launch("square", {a, w}, {2}, {128});
  builder.Launch("reverse", {w, c}, {8}, {32});
  Create(builder.module());
  ASSERT_EQ(TextOf(created_.failure), "");
  ASSERT_EQ(TextOf(runtime().Call()), "");
  const std::vector<double> values = Output();
  for (int i = 0; i < kElements; ++i) {
    EXPECT_EQ(values[i], (255 - i) * (255 - i)) << i;
  }
  EXPECT_EQ(Damage(), "");
}

TEST_F(CudaRuntimeTest, WhatAKernelDoesNotWriteKeepsThePoison) {
  const ModuleBuilder builder =
      Binary(PtxHead() + PtxKernel("add", 3,
                                   "  and.b32 %r11, %r1, 1;\n"
                                   "  setp.ne.s32 %p1, %r11, 0;\n"
                                   "  @%p1 bra $END;\n"
                                   "  mov.f32 %f1, 0f3F800000;\n"
                                   "  st.global.f32 [%rd13], %f1;\n$END:\n"));
  Create(builder.module());
  ASSERT_EQ(TextOf(runtime().Call()), "");
  const std::vector<double> c = Output();
  for (int i = 0; i < kElements; ++i) {
    EXPECT_EQ(std::isnan(c[i]), i % 2 == 1) << i;
  }
}

TEST_F(CudaRuntimeTest, CodeThatTheDriverDoesNotTakeIsTheCandidatesWithTheLog) {
  const ModuleBuilder builder =
      Binary(PtxHead() + PtxKernel("add", 3, "  abacus.f32 %f1, %f2;\n"));
  Create(builder.module());
  EXPECT_THAT(TextOf(created_.failure),
              AllOf(StartsWith("OUTCOME_COMPILE_ERROR"),
                    HasSubstr("CUDA_ERROR_INVALID_PTX"), HasSubstr("abacus")));
  EXPECT_EQ(created_.runtime, nullptr);
  ModuleBuilder torn("no binary at all", "cuda");
  Create(torn.module());
  EXPECT_THAT(TextOf(created_.failure), StartsWith("OUTCOME_COMPILE_ERROR"));
}

TEST_F(CudaRuntimeTest, AKernelThatIsNotThereIsTheCandidates) {
  const ModuleBuilder builder = Binary(AddPtx(), "subtract");
  Create(builder.module());
  EXPECT_THAT(
      TextOf(created_.failure),
      AllOf(StartsWith("OUTCOME_COMPILE_ERROR"), HasSubstr("subtract")));
}

TEST_F(CudaRuntimeTest, LimitsOfTheDeviceAreKept) {
  const ModuleBuilder threads = Binary(AddPtx(), "add", 0, 2048);
  Create(threads.module());
  EXPECT_THAT(TextOf(created_.failure),
              AllOf(StartsWith("OUTCOME_REFUSED"), HasSubstr("2048")));
  const ModuleBuilder shared = Binary(AddPtx(), "add", 164 << 10);
  Create(shared.module());
  EXPECT_THAT(TextOf(created_.failure),
              AllOf(StartsWith("OUTCOME_REFUSED"), HasSubstr("167936"),
                    HasSubstr("166912")));
  // More than a launch gets without leave, and all that there is.
  const ModuleBuilder most = Binary(AddPtx(), "add", 163 << 10);
  Create(most.module());
  ASSERT_EQ(TextOf(created_.failure), "");
  EXPECT_EQ(TextOf(runtime().Call()), "");
  EXPECT_EQ(Output()[9], 36);
}

TEST_F(CudaRuntimeTest, ABufferBeyondTheDevicesMemoryIsOutOfMemory) {
  ModuleBuilder builder = CudaModule(AddPtx());
  builder.Buffer(BufferRole::kInput, "a", kElements);
  builder.Buffer(BufferRole::kInput, "b", kElements);
  builder.Buffer(BufferRole::kOutput, "c", device_.memory_bytes());
  Create(builder.module());
  EXPECT_THAT(
      TextOf(created_.failure),
      AllOf(StartsWith("OUTCOME_OUT_OF_MEMORY"), HasSubstr("output c")));
  // What it took is given back.
  const ModuleBuilder honest = Binary(AddPtx());
  Create(honest.module());
  EXPECT_EQ(TextOf(created_.failure), "");
}

TEST_F(CudaRuntimeTest, WritesAroundBuffersShow) {
  const std::string first = "  setp.ne.s32 %p1, %r1, 0;\n  @%p1 bra $END;\n";
  // {what the kernel writes, what is said}.
  const std::vector<std::pair<std::string, std::string>> rows = {
      {first + "  st.global.f32 [%rd3+1024], %f1;\n$END:\n",
       "4 bytes after output c were overwritten"},
      {first + "  st.global.f32 [%rd3+-4], %f1;\n"
               "  st.global.f32 [%rd3+-8], %f1;\n$END:\n",
       "8 bytes before output c were overwritten"},
      {"  setp.ne.s32 %p1, %r1, 7;\n  @%p1 bra $END;\n"
       "  st.global.f32 [%rd12], %f3;\n$END:\n",
       "input b was overwritten"},
      {"", ""}};
  for (const auto& [write, said] : rows) {
    const ModuleBuilder builder = Binary(AddPtx(write));
    Create(builder.module());
    ASSERT_EQ(TextOf(created_.failure), "");
    ASSERT_EQ(TextOf(runtime().Call()), "");
    EXPECT_EQ(Damage(), said);
    // And is forgotten by the next poisoning, but for inputs.
    ASSERT_EQ(TextOf(runtime().Poison(0x7F)), "");
    if (said.find("input") == std::string::npos) EXPECT_EQ(Damage(), "");
  }
}

TEST_F(CudaRuntimeTest, TimesAreTheDevicesClockAndGrowWithTheCalls) {
  const ModuleBuilder builder = Binary(AddPtx());
  Create(builder.module());
  ASSERT_EQ(TextOf(runtime().Call()), "");
  const int64_t one = TimeOf(1);
  EXPECT_GE(one, 2000);  // a launch
  EXPECT_EQ(TimeOf(1), one);
  EXPECT_NEAR(static_cast<double>(TimeOf(1000)), 1000.0 * one, 1000);
  EXPECT_EQ(Output()[255], 1020);
}

TEST_F(CudaRuntimeTest, EvictionLeavesResultsAndTimesAlone) {
  const ModuleBuilder builder = Binary(AddPtx());
  Create(builder.module(), /*evict_bytes=*/1 << 20);
  ASSERT_EQ(TextOf(runtime().Evict()), "");
  const int64_t once = TimeOf(1);
  ASSERT_EQ(TextOf(runtime().Evict()), "");
  EXPECT_EQ(TimeOf(1), once);
  EXPECT_EQ(Output()[100], 400);
  EXPECT_EQ(Damage(), "");
}

TEST_F(CudaRuntimeTest, ADeviceThatIsNotThereIsTheBoardsFault) {
  device_.set_selector("97");
  const ModuleBuilder builder = Binary(AddPtx());
  Create(builder.module());
  EXPECT_THAT(TextOf(created_.failure),
              AllOf(StartsWith("OUTCOME_DEVICE_FAULT"), HasSubstr("97")));
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
    const ModuleBuilder builder = Binary(AddPtx(more));
    Create(builder.module());
    std::cerr << TextOf(created_.failure) << TextOf(runtime().Call()) << " | "
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
    for (const auto& device : *devices) {
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
              "UNAVAILABLE: the CUDA driver that was named.*nowhere");
  EXPECT_EXIT(ListWith("libm.so.6", ""), ::testing::ExitedWithCode(0),
              "UNAVAILABLE: the CUDA driver is too old: it lacks cuInit");
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
  const ModuleBuilder builder = Binary(AddPtx());
  RuntimeOrFailure created = CreateRuntime(builder.module(), options);
  std::vector<std::vector<double>> values(2,
                                          std::vector<double>(kElements, 21));
  const std::vector<GuardedMemory> inputs = HostTensors(values);
  std::vector<const void*> first, second;
  std::cerr << TextOf(created.failure)
            << TextOf(created.runtime->SetInputs(inputs))
            << TextOf(created.runtime->Poison(0xFF))
            << TextOf(created.runtime->ReadOutputs(&first))
            << TextOf(created.runtime->Call());
  // Without being read again.
  std::cerr << "c=" << ReadValues(first[0], kElements, DType::kF32)[200];
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
