// The simulated CUDA driver itself: memory, faults, its clock, and launches
// that it does not simulate again.
#include "device_agent/cuda_sim/simulated_context.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/device_agent/cuda_ptx.h"

namespace regatta::cuda_sim {
namespace {

using regatta::testing::AddPtx;
using regatta::testing::PtxHead;
using regatta::testing::PtxKernel;
using ::testing::HasSubstr;

constexpr int kElements = 256;
constexpr uint64_t kBytes = kElements * sizeof(float);

Gpu OneGpu(const char* name) { return ChooseGpus(name)->front(); }

class CudaSimTest : public ::testing::Test {
 protected:
  // Three tensors: a[i] = i, b[i] = 10, c unset.
  explicit CudaSimTest(const char* gpu = "sm_80", bool managed = false)
      : context_(OneGpu(gpu)) {
    for (uint64_t& address : tensors_) {
      EXPECT_EQ(context_.Allocate(kBytes, managed, &address), 0);
    }
    std::vector<float> a(kElements), b(kElements, 10);
    for (int i = 0; i < kElements; ++i) a[i] = static_cast<float>(i);
    EXPECT_EQ(context_.Write(tensors_[0], a.data(), kBytes), 0);
    EXPECT_EQ(context_.Write(tensors_[1], b.data(), kBytes), 0);
  }
  // The kernel "add" of `ptx`, by 4 blocks of 64.
  void Load(const std::string& ptx) {
    CodeModule* module = nullptr;
    std::string log;
    ASSERT_EQ(context_.LoadCode(ptx.c_str(), &module, &log), 0) << log;
    kernel_ = module->Find("add");
    ASSERT_NE(kernel_, nullptr);
  }
  cuda::Result Launch() {
    void* arguments[] = {&tensors_[0], &tensors_[1], &tensors_[2]};
    return context_.Launch(
        *kernel_, {.grid = {4, 1, 1}, .block = {64, 1, 1}, .shared_bytes = 0},
        arguments);
  }
  float Output(int i) {
    float value = 0;
    EXPECT_EQ(context_.Read(tensors_[2] + 4 * i, &value, sizeof(value)), 0);
    return value;
  }
  // Loads and launches; the error that is told afterwards.
  cuda::Result ErrorOf(const std::string& more) {
    Load(AddPtx(more));
    EXPECT_EQ(Launch(), 0);
    return context_.error();
  }

  SimulatedContext context_;
  uint64_t tensors_[3] = {};
  Kernel* kernel_ = nullptr;
};

TEST_F(CudaSimTest, LaunchesComputeAndTheClockAdvances) {
  Load(AddPtx());
  const int64_t before = context_.picoseconds();
  ASSERT_EQ(Launch(), 0);
  for (int i : {0, 63, 64, 255}) EXPECT_EQ(Output(i), i + 10) << i;
  // At least the launch itself: 2 microseconds.
  EXPECT_GE(context_.picoseconds() - before, 2'000'000);
}

TEST_F(CudaSimTest, OnlyWhatWouldChangeNothingIsRememberedNotSimulated) {
  Load(AddPtx());
  std::vector<int64_t> times;
  for (int i = 0; i < 100; ++i) {
    const int64_t before = context_.picoseconds();
    ASSERT_EQ(Launch(), 0);
    times.push_back(context_.picoseconds() - before);
  }
  EXPECT_THAT(times, ::testing::Each(times[0]));
  // The first writes c; the second is seen to leave it as it is.
  EXPECT_EQ(context_.simulated_launches(), 2);

  // Poisoned outputs are computed again.
  ASSERT_EQ(context_.Fill(tensors_[2], 0xFF, kBytes), 0);
  ASSERT_EQ(Launch(), 0);
  EXPECT_EQ(Output(7), 17);
  EXPECT_EQ(context_.simulated_launches(), 3);
  // Other inputs give other outputs.
  const float changed = 1000;
  ASSERT_EQ(context_.Write(tensors_[0] + 4 * 7, &changed, sizeof(changed)), 0);
  ASSERT_EQ(Launch(), 0);
  EXPECT_EQ(Output(7), 1010);
  // A buffer that the launch does not touch changes nothing.
  ASSERT_EQ(Launch(), 0);
  const int64_t simulated = context_.simulated_launches();
  uint64_t other = 0;
  ASSERT_EQ(context_.Allocate(kBytes, false, &other), 0);
  ASSERT_EQ(context_.Fill(other, 1, kBytes), 0);
  ASSERT_EQ(Launch(), 0);
  EXPECT_EQ(context_.simulated_launches(), simulated);
}

TEST_F(CudaSimTest, AKernelThatAddsToItsOutputIsSimulatedEveryTime) {
  Load(PtxHead() + PtxKernel("add", 3,
                             "  ld.global.f32 %f1, [%rd13];\n"
                             "  add.f32 %f1, %f1, 0f3F800000;\n"
                             "  st.global.f32 [%rd13], %f1;\n"));
  ASSERT_EQ(context_.Fill(tensors_[2], 0, kBytes), 0);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(Launch(), 0);
  EXPECT_EQ(Output(100), 20);
  EXPECT_EQ(context_.simulated_launches(), 20);
}

TEST_F(CudaSimTest, TwoContextsTellTheSameTime) {
  Load(AddPtx());
  const int64_t start = context_.picoseconds();
  ASSERT_EQ(Launch(), 0);
  const int64_t took = context_.picoseconds() - start;
  SimulatedContext other(OneGpu("sm_80"));
  uint64_t addresses[3];
  for (uint64_t& address : addresses) {
    ASSERT_EQ(other.Allocate(kBytes, false, &address), 0);
    ASSERT_EQ(other.Fill(address, 0, kBytes), 0);
  }
  CodeModule* module = nullptr;
  std::string log;
  ASSERT_EQ(other.LoadCode(AddPtx().c_str(), &module, &log), 0);
  void* arguments[] = {&addresses[0], &addresses[1], &addresses[2]};
  const int64_t before = other.picoseconds();
  ASSERT_EQ(other.Launch(*module->Find("add"),
                         {.grid = {4, 1, 1}, .block = {64, 1, 1}}, arguments),
            0);
  // Other data, the same time: what counts are the instructions.
  EXPECT_EQ(other.picoseconds() - before, took);
}

TEST_F(CudaSimTest, AnIllegalAddressIsToldForEver) {
  EXPECT_EQ(ErrorOf("  mov.u64 %rd20, 16;\n  st.global.f32 [%rd20], %f1;\n"),
            cuda::kIllegalAddress);
  EXPECT_THAT(context_.fault(), HasSubstr("global_out_of_bounds"));
  EXPECT_EQ(Launch(), cuda::kIllegalAddress);
  float value = 0;
  EXPECT_EQ(context_.Read(tensors_[0], &value, 4), cuda::kIllegalAddress);
  uint64_t address = 0;
  EXPECT_EQ(context_.Allocate(16, false, &address), cuda::kIllegalAddress);
  context_.BeginCall();
  EXPECT_THAT(context_.fault(), HasSubstr("global_out_of_bounds"));
}

TEST_F(CudaSimTest, ATrapIsALaunchFailure) {
  EXPECT_EQ(ErrorOf("  trap;\n"), cuda::kLaunchFailed);
  EXPECT_THAT(context_.fault(), HasSubstr("trap"));
}

TEST_F(CudaSimTest, AMisalignedAccessIsNamed) {
  EXPECT_EQ(ErrorOf("  add.s64 %rd20, %rd3, 2;\n"
                    "  ld.global.f32 %f1, [%rd20];\n"),
            cuda::kMisalignedAddress);
}

TEST_F(CudaSimTest, AKernelThatNeverEndsHangsAndLaterOnesWaitBehindIt) {
  // Waits at a barrier that half of the warps never reach, as others wait at
  // another: nobody ever goes on.
  Load(
      AddPtx("  setp.lt.s32 %p1, %r2, 32;\n"
             "  @%p1 bra $FIRST;\n"
             "  bar.sync 1, 64;\n  bra $END;\n"
             "$FIRST:\n  bar.sync 2, 64;\n$END:\n"));
  EXPECT_EQ(Launch(), 0);
  EXPECT_TRUE(context_.hung()) << context_.fault();
  EXPECT_EQ(context_.error(), 0);
  EXPECT_EQ(Launch(), 0);
  EXPECT_EQ(context_.simulated_launches(), 1);
}

TEST_F(CudaSimTest, WhatAGpuWouldNotLaunchIsRefusedAndHarmsNothing) {
  Load(AddPtx());
  void* arguments[] = {&tensors_[0], &tensors_[1], &tensors_[2]};
  EXPECT_EQ(
      context_.Launch(
          *kernel_,
          {.grid = {1, 1, 1}, .block = {64, 1, 1}, .shared_bytes = 49 << 10},
          arguments),
      cuda::kInvalidValue);
  EXPECT_EQ(
      context_.Launch(*kernel_, {.grid = {1, 1, 1}, .block = {1025, 1, 1}},
                      arguments),
      cuda::kLaunchOutOfResources);
  EXPECT_EQ(context_.Allow(kernel_, 164 << 10), cuda::kInvalidValue);
  EXPECT_EQ(context_.Allow(kernel_, 163 << 10), 0);
  EXPECT_EQ(Launch(), 0);
  EXPECT_EQ(context_.error(), 0);
}

TEST_F(CudaSimTest, MemoryIsBounded) {
  uint64_t address = 0;
  EXPECT_EQ(context_.Allocate(kMemoryBytes, false, &address),
            cuda::kOutOfMemory);
  EXPECT_EQ(context_.Allocate(0, false, &address), cuda::kInvalidValue);
  EXPECT_EQ(context_.Free(tensors_[1] + 4), cuda::kInvalidValue);
  EXPECT_EQ(context_.Free(tensors_[1]), 0);
  EXPECT_EQ(context_.Free(tensors_[1]), cuda::kInvalidValue);
}

TEST_F(CudaSimTest, PtxThatIsNoneIsExplained) {
  CodeModule* module = nullptr;
  std::string log;
  EXPECT_EQ(context_.LoadCode("abacus", &module, &log), cuda::kInvalidPtx);
  EXPECT_THAT(log, HasSubstr("abacus"));
}

class SharingGpuTest : public CudaSimTest {
 protected:
  SharingGpuTest() : CudaSimTest("sm_87", /*managed=*/true) {}
};

TEST_F(SharingGpuTest, HostAndGpuSeeTheSameBytesAtTheSameAddress) {
  Load(AddPtx());
  auto* a = reinterpret_cast<float*>(tensors_[0]);
  const auto* c = reinterpret_cast<const float*>(tensors_[2]);
  ASSERT_EQ(Launch(), 0);
  EXPECT_EQ(c[5], 15);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(Launch(), 0);
  EXPECT_EQ(context_.simulated_launches(), 2);
  a[5] = 90;  // unseen by the driver
  ASSERT_EQ(Launch(), 0);
  EXPECT_EQ(c[5], 100);
  ASSERT_EQ(context_.Free(tensors_[0]), 0);
  ASSERT_EQ(Launch(), 0);
  EXPECT_EQ(context_.error(), cuda::kIllegalAddress);
}

TEST(GpuListTest, NamesSeveralGpusAndRefusesOthers) {
  const auto two = ChooseGpus("sm_75, sm_90");
  ASSERT_TRUE(two.ok()) << two.status();
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ((*two)[0].model.architecture.sm, 75);
  EXPECT_EQ((*two)[1].name, "Simulated sm_90");
  for (const char* bad : {"", "sm_81", "80", "sm_80,"}) {
    const auto none = ChooseGpus(bad);
    EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(none.status().message()), HasSubstr("sm_75, sm_80"))
        << bad;
  }
}

}  // namespace
}  // namespace regatta::cuda_sim
