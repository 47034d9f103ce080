// Hand-written OpenCL modules through the runtime of run workers.
#include "device_agent/run/opencl_runtime.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "device_agent/run/runtime_list.h"
#include "gmock/gmock.h"
#include "tests/device_agent/opencl_support.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::HostTensors;
using testing::ModuleBuilder;
using ::testing::StartsWith;
using testing::TextOf;

constexpr int64_t kElements = 256;
constexpr char kAddSource[] = R"(
__kernel void add(__global const float* a, __global const float* b,
                  __global float* c) {
  const size_t i = get_global_id(0);
  c[i] = a[i] + b[i];
}
)";

// What a run worker does with a runtime, by hand.
class OpenClRuntimeTest : public testing::OpenClTest {
 protected:
  // c = a + b of kElements, by one launch of `entry`.
  static ModuleBuilder Binary(const std::string& source,
                              const std::string& entry) {
    ModuleBuilder builder(source);
    const int a = builder.Buffer(BufferRole::kInput, "a", kElements);
    const int b = builder.Buffer(BufferRole::kInput, "b", kElements);
    const int c = builder.Buffer(BufferRole::kOutput, "c", kElements);
    builder.Launch(entry, {a, b, c}, {kElements / 64}, {64});
    return builder;
  }
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
  std::vector<double> Output(size_t index, int64_t elements) {
    std::vector<const void*> outputs;
    EXPECT_EQ(TextOf(runtime().ReadOutputs(&outputs)), "");
    return ReadValues(outputs.at(index), static_cast<size_t>(elements),
                      DType::kF32);
  }
  std::string Damage() {
    std::string damage;
    EXPECT_EQ(TextOf(runtime().FindDamage(&damage)), "");
    return damage;
  }

  std::vector<GuardedMemory> inputs_ = Inputs();
  RuntimeOrFailure created_;
};

TEST_F(OpenClRuntimeTest, ListedDevicesHaveNamesAndLimitsAndAreFoundAgain) {
  EXPECT_EQ(device_.kind(), "opencl");
  EXPECT_NE(device_.name(), "");
  EXPECT_NE(device_.platform(), "");
  EXPECT_THAT(device_.driver_version(), HasSubstr("OpenCL"));
  EXPECT_GT(device_.compute_units(), 0);
  EXPECT_GE(device_.max_group(), 64);
  EXPECT_GE(device_.local_bytes(), 1 << 10);
  EXPECT_GT(device_.memory_bytes(), 1 << 20);
  EXPECT_EQ(device_.vector_bits() % 32, 0);
  const v1::DeviceList again = ListDevices({"opencl"});
  EXPECT_EQ(again.errors_size(), 0);
  ASSERT_GE(again.devices_size(), 1);
  EXPECT_EQ(again.devices(0).SerializeAsString(), device_.SerializeAsString());
}

TEST_F(OpenClRuntimeTest, AKernelReadsItsInputsAndWritesItsOutput) {
  const ModuleBuilder builder = Binary(kAddSource, "add");
  Create(builder.module());
  ASSERT_EQ(TextOf(created_.failure), "");
  ASSERT_EQ(TextOf(runtime().Call()), "");
  const std::vector<double> c = Output(0, kElements);
  for (int i = 0; i < kElements; ++i) EXPECT_EQ(c[i], 4 * i) << i;
  EXPECT_EQ(Damage(), "");
}

TEST_F(OpenClRuntimeTest, KernelsOfASequenceRunInOrderThroughTheWorkspace) {
  ModuleBuilder builder(R"(
__kernel void square(__global const float* a, __global float* w) {
  const size_t i = get_global_id(1) * get_global_size(0) + get_global_id(0);
  w[i] = a[i] * a[i];
}
__kernel void reverse_rows(__global const float* w, __global float* c) {
  const size_t x = get_global_id(0), y = get_global_id(1);
  const size_t width = get_global_size(0);
  c[y * width + x] = w[y * width + width - 1 - x];
}
)");
  const int a = builder.Buffer(BufferRole::kInput, "a", kElements);
  builder.Buffer(BufferRole::kInput, "b", kElements);
  const int c = builder.Buffer(BufferRole::kOutput, "c", kElements);
  const int w = builder.Buffer(BufferRole::kWorkspace, "w", kElements);
  // 32 columns, 8 rows.
  builder.Launch("square", {a, w}, {2, 4}, {16, 2});
  builder.Launch("reverse_rows", {w, c}, {4, 8}, {8, 1});
  Create(builder.module());
  ASSERT_EQ(TextOf(created_.failure), "");
  ASSERT_EQ(TextOf(runtime().Call()), "");
  const std::vector<double> values = Output(0, kElements);
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 32; ++x) {
      const double from = y * 32 + 31 - x;
      EXPECT_EQ(values[y * 32 + x], from * from) << x << ", " << y;
    }
  }
  EXPECT_EQ(Damage(), "");
}

TEST_F(OpenClRuntimeTest, WhatAKernelDoesNotWriteKeepsThePoison) {
  const ModuleBuilder builder = Binary(R"(
__kernel void even(__global const float* a, __global const float* b,
                   __global float* c) {
  const size_t i = get_global_id(0);
  if (i % 2 == 0) c[i] = a[i] + b[i];
}
)",
                                       "even");
  Create(builder.module());
  ASSERT_EQ(TextOf(runtime().Call()), "");
  const std::vector<double> c = Output(0, kElements);
  for (int i = 0; i < kElements; ++i) {
    EXPECT_EQ(std::isnan(c[i]), i % 2 == 1) << i;
  }
}

TEST_F(OpenClRuntimeTest, ASourceThatDoesNotCompileIsTheCandidatesWithTheLog) {
  const ModuleBuilder builder =
      Binary("__kernel void add(__global float* c) { c[0] = nowhere; }", "add");
  Create(builder.module());
  EXPECT_THAT(TextOf(created_.failure),
              AllOf(StartsWith("OUTCOME_COMPILE_ERROR"), HasSubstr("nowhere")));
  EXPECT_EQ(created_.runtime, nullptr);
}

TEST_F(OpenClRuntimeTest, AKernelThatIsNotThereIsTheCandidates) {
  const ModuleBuilder builder = Binary(kAddSource, "subtract");
  Create(builder.module());
  EXPECT_THAT(
      TextOf(created_.failure),
      AllOf(StartsWith("OUTCOME_COMPILE_ERROR"), HasSubstr("subtract")));
}

TEST_F(OpenClRuntimeTest, GroupsBeyondTheDevicesLimitAreRefused) {
  ModuleBuilder builder(kAddSource);
  const int a = builder.Buffer(BufferRole::kInput, "a", kElements);
  const int b = builder.Buffer(BufferRole::kInput, "b", kElements);
  const int c = builder.Buffer(BufferRole::kOutput, "c", kElements);
  builder.Launch("add", {a, b, c}, {1}, {2 * device_.max_group()});
  Create(builder.module());
  EXPECT_THAT(TextOf(created_.failure),
              AllOf(StartsWith("OUTCOME_REFUSED"),
                    HasSubstr(std::to_string(2 * device_.max_group()))));
}

TEST_F(OpenClRuntimeTest, ABufferBeyondTheDevicesMemoryIsOutOfMemory) {
  ModuleBuilder builder(kAddSource);
  builder.Buffer(BufferRole::kInput, "a", kElements);
  builder.Buffer(BufferRole::kInput, "b", kElements);
  builder.Buffer(BufferRole::kOutput, "c", device_.memory_bytes());
  Create(builder.module());
  EXPECT_THAT(
      TextOf(created_.failure),
      AllOf(StartsWith("OUTCOME_OUT_OF_MEMORY"), HasSubstr("output c")));
}

TEST_F(OpenClRuntimeTest, WritesAroundBuffersShow) {
  // {what the kernel writes, what is said}. The second word behind the end, so
  // that the first is seen to be inside.
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"if (i == 0) c[get_global_size(0)] = 1;",
       "4 bytes after output c were overwritten"},
      {"if (i == 0) { c[-1] = 1; c[-2] = 1; }",
       "8 bytes before output c were overwritten"},
      {"if (i == 7) ((__global float*)b)[7] = 1;", "input b was overwritten"},
      {"", ""}};
  for (const auto& [write, said] : rows) {
    const ModuleBuilder builder = Binary(
        "__kernel void add(__global const float* a, __global const float* b,\n"
        "                  __global float* c) {\n"
        "  const int i = get_global_id(0);\n  c[i] = a[i] + b[i];\n  " +
            write + "\n}\n",
        "add");
    Create(builder.module());
    ASSERT_EQ(TextOf(created_.failure), "");
    ASSERT_EQ(TextOf(runtime().Call()), "");
    EXPECT_EQ(Damage(), said);
    // And is forgotten by the next poisoning, but for inputs.
    ASSERT_EQ(TextOf(runtime().Poison(0x7F)), "");
    if (said.find("input") == std::string::npos) EXPECT_EQ(Damage(), "");
  }
}

TEST_F(OpenClRuntimeTest, TimesAreTheDevicesAndGrowWithTheWork) {
  // A chain of `loops` dependent multiply-adds by one work-item, so that the
  // compiler can neither shorten it nor spread it out.
  const auto time_of = [&](int loops) -> int64_t {
    ModuleBuilder builder(
        "__kernel void chain(__global const float* a,\n"
        "                    __global const float* b, __global float* c) {\n"
        "  float x = a[0];\n  for (int i = 0; i < " +
        std::to_string(loops) +
        "; ++i) x = x * b[1] + a[1];\n  c[get_global_id(0)] = x;\n}\n");
    const int a = builder.Buffer(BufferRole::kInput, "a", kElements);
    const int b = builder.Buffer(BufferRole::kInput, "b", kElements);
    const int c = builder.Buffer(BufferRole::kOutput, "c", 1);
    builder.Launch("chain", {a, b, c}, {1}, {1});
    Create(builder.module());
    EXPECT_EQ(TextOf(created_.failure), "");
    EXPECT_EQ(TextOf(runtime().Call()), "");
    int64_t best = std::numeric_limits<int64_t>::max();
    for (int i = 0; i < 5; ++i) {
      int64_t elapsed_ns = 0;
      const SteadyTime start = RealClock().Steady();
      EXPECT_EQ(TextOf(runtime().TimeCalls(4, &elapsed_ns)), "");
      EXPECT_GT(elapsed_ns, 0);
      EXPECT_LE(elapsed_ns, RealClock().Steady().ns - start.ns);
      best = std::min(best, elapsed_ns);
    }
    return best;
  };
  // Ten times the work; a busy machine makes the short one look longer.
  EXPECT_GT(time_of(2'000'000), 4 * time_of(200'000));
}

TEST_F(OpenClRuntimeTest, EvictionLeavesResultsAlone) {
  const ModuleBuilder builder = Binary(kAddSource, "add");
  Create(builder.module(), /*evict_bytes=*/1 << 20);
  ASSERT_EQ(TextOf(runtime().Evict()), "");
  int64_t elapsed_ns = 0;
  ASSERT_EQ(TextOf(runtime().TimeCalls(1, &elapsed_ns)), "");
  ASSERT_EQ(TextOf(runtime().Evict()), "");
  EXPECT_EQ(Output(0, kElements)[100], 400);
  EXPECT_EQ(Damage(), "");
}

TEST_F(OpenClRuntimeTest, ManyCallsAtOnceAreAllTimed) {
  const ModuleBuilder builder = Binary(kAddSource, "add");
  Create(builder.module());
  int64_t one_ns = 0, many_ns = 0;
  ASSERT_EQ(TextOf(runtime().Call()), "");
  ASSERT_EQ(TextOf(runtime().TimeCalls(1, &one_ns)), "");
  // More than are kept in flight.
  ASSERT_EQ(TextOf(runtime().TimeCalls(1500, &many_ns)), "");
  EXPECT_GT(many_ns, 1500);
  EXPECT_EQ(Output(0, kElements)[255], 1020);
}

TEST_F(OpenClRuntimeTest, ADeviceThatIsNotThereIsTheBoardsFault) {
  device_.set_selector("97/3");
  const ModuleBuilder builder = Binary(kAddSource, "add");
  Create(builder.module());
  EXPECT_THAT(TextOf(created_.failure),
              AllOf(StartsWith("OUTCOME_DEVICE_FAULT"), HasSubstr("97/3")));
}

TEST(RuntimeListTest, AKindThatNobodyServesIsTheBoardsFault) {
  Module module;
  module.target = "abacus,triple=x";
  RuntimeOptions options;
  options.clock = &RealClock();
  EXPECT_EQ(TextOf(CreateRuntime(module, options).failure),
            "OUTCOME_DEVICE_FAULT: run workers serve no target of kind abacus");
  const v1::DeviceList list = ListDevices({"abacus"});
  EXPECT_EQ(list.devices_size(), 0);
  EXPECT_EQ(list.errors_size(), 1);
  EXPECT_EQ(PrepareDevice("abacus", "").code(), absl::StatusCode::kNotFound);
  // Nothing is shared between modules on the host.
  EXPECT_EQ(PrepareDevice("cpu", "").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace regatta
