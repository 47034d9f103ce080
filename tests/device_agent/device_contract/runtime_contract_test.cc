// What every ModuleRuntime of a device must hold, as run workers use it:
// modules written by hand in each kind's language.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "gmock/gmock.h"
#include "tests/device_agent/device_contract/device_kind.h"
#include "tests/device_agent/runtime_by_hand.h"

namespace regatta::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RuntimeContract : public ::testing::TestWithParam<DeviceKind>,
                        protected RuntimeByHand {
 protected:
  void SetUp() override {
    const auto device = GetParam().first_device();
    if (absl::IsUnavailable(device.status())) {
      GTEST_SKIP() << device.status().message();
    }
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *device;
  }
  static ModuleBuilder Adding(Deed deed = Deed::kNothing,
                              const OneLaunch& launch = {}) {
    return Launched(ModuleBuilder(GetParam().add(deed), GetParam().name),
                    launch);
  }
  void Create(const ModuleBuilder& builder, int64_t evict_bytes = 0) {
    RuntimeByHand::Create(builder, device_.selector(), evict_bytes);
  }
  // Why there is no runtime for the module; "": there is one.
  std::string WhyNot(const ModuleBuilder& builder) {
    Create(builder);
    return failure();
  }

  v1::BoardDevice device_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, RuntimeContract,
                         ::testing::ValuesIn(DeviceKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(RuntimeContract, ListedDevicesHaveNamesAndLimitsAndAreFoundAgain) {
  EXPECT_EQ(device_.kind(), GetParam().name);
  EXPECT_NE(device_.name(), "");
  EXPECT_NE(device_.driver_version(), "");
  EXPECT_GT(device_.compute_units(), 0);
  EXPECT_GE(device_.max_group(), 64);
  EXPECT_GE(device_.local_bytes(), 1 << 10);
  EXPECT_GT(device_.memory_bytes(), 1 << 20);
  EXPECT_EQ(device_.vector_bits() % 32, 0);
  const v1::DeviceList again = ListDevices({GetParam().name});
  EXPECT_EQ(again.errors_size(), 0);
  ASSERT_GE(again.devices_size(), 1);
  EXPECT_EQ(again.devices(0).SerializeAsString(), device_.SerializeAsString());
}

TEST_P(RuntimeContract, AKernelReadsItsInputsAndWritesItsOutput) {
  Create(Adding());
  ASSERT_EQ(failure(), "");
  ASSERT_EQ(TextOf(runtime().Call()), "");
  const std::vector<double> c = Output();
  for (int i = 0; i < kElements; ++i) EXPECT_EQ(c[i], 4 * i) << i;
  EXPECT_EQ(Damage(), "");
}

TEST_P(RuntimeContract, KernelsOfASequenceRunInOrderThroughTheWorkspace) {
  ModuleBuilder builder(GetParam().rows(), GetParam().name);
  const int a = builder.Buffer(BufferRole::kInput, "a", kElements);
  builder.Buffer(BufferRole::kInput, "b", kElements);
  const int c = builder.Buffer(BufferRole::kOutput, "c", kElements);
  const int w = builder.Buffer(BufferRole::kWorkspace, "w", kElements);
  // 32 columns, 8 rows.
  builder.Launch("square", {a, w}, {2, 4}, {16, 2});
  builder.Launch("reverse_rows", {w, c}, {4, 8}, {8, 1});
  Create(builder);
  ASSERT_EQ(failure(), "");
  ASSERT_EQ(TextOf(runtime().Call()), "");
  const std::vector<double> values = Output();
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 32; ++x) {
      const double from = y * 32 + 31 - x;
      EXPECT_EQ(values[y * 32 + x], from * from) << x << ", " << y;
    }
  }
  EXPECT_EQ(Damage(), "");
}

TEST_P(RuntimeContract, WhatAKernelDoesNotWriteKeepsThePoison) {
  Create(Adding(Deed::kSkipsOdd));
  ASSERT_EQ(TextOf(runtime().Call()), "");
  const std::vector<double> c = Output();
  for (int i = 0; i < kElements; ++i) {
    EXPECT_EQ(std::isnan(c[i]), i % 2 == 1) << i;
  }
}

TEST_P(RuntimeContract, CodeThatTheDriverDoesNotTakeIsTheCandidatesWithTheLog) {
  EXPECT_THAT(WhyNot(Adding(Deed::kNoCode)),
              AllOf(StartsWith("OUTCOME_COMPILE_ERROR"), HasSubstr("abacus")));
}

TEST_P(RuntimeContract, AKernelThatIsNotThereIsTheCandidates) {
  EXPECT_THAT(
      WhyNot(Adding(Deed::kNothing, {.entry = "subtract"})),
      AllOf(StartsWith("OUTCOME_COMPILE_ERROR"), HasSubstr("subtract")));
}

TEST_P(RuntimeContract, GroupsBeyondTheDevicesLimitAreRefused) {
  const int64_t group = 2 * device_.max_group();
  EXPECT_THAT(
      WhyNot(Adding(Deed::kNothing, {.groups = 1, .group = group})),
      AllOf(StartsWith("OUTCOME_REFUSED"), HasSubstr(std::to_string(group))));
}

// What would be a launch of 64 threads once it is cut to 32 bits.
TEST_P(RuntimeContract, ExtentsThatNoDriverCanTakeAreTheCandidates) {
  constexpr int64_t kWrapped = (int64_t{1} << 32) + 64;
  EXPECT_THAT(
      WhyNot(Adding(Deed::kNothing, {.group = kWrapped})),
      AllOf(StartsWith("OUTCOME_COMPILE_ERROR"), HasSubstr("4294967360")));
  EXPECT_THAT(
      WhyNot(Adding(Deed::kNothing, {.groups = -4})),
      AllOf(StartsWith("OUTCOME_COMPILE_ERROR"), HasSubstr("extent of -4")));
  EXPECT_THAT(
      WhyNot(Adding(Deed::kNothing, {.shared_bytes = kWrapped})),
      AllOf(StartsWith("OUTCOME_REFUSED"), HasSubstr("4294967360 bytes")));
}

TEST_P(RuntimeContract, ABufferBeyondTheDevicesMemoryIsOutOfMemory) {
  EXPECT_THAT(
      WhyNot(Adding(Deed::kNothing, {.outputs = device_.memory_bytes()})),
      AllOf(StartsWith("OUTCOME_OUT_OF_MEMORY"), HasSubstr("output c")));
  // What it took is given back.
  EXPECT_EQ(WhyNot(Adding()), "");
}

TEST_P(RuntimeContract, WritesAroundBuffersShow) {
  const std::pair<Deed, std::string> rows[] = {
      {Deed::kWritesBehind, "4 bytes after output c were overwritten"},
      {Deed::kWritesBefore, "8 bytes before output c were overwritten"},
      {Deed::kWritesInput, "input b was overwritten"},
      {Deed::kNothing, ""}};
  for (const auto& [deed, said] : rows) {
    Create(Adding(deed));
    ASSERT_EQ(failure(), "");
    ASSERT_EQ(TextOf(runtime().Call()), "");
    EXPECT_EQ(Damage(), said);
    // And is forgotten by the next poisoning, but for inputs.
    ASSERT_EQ(TextOf(runtime().Poison(0x7F)), "");
    if (deed != Deed::kWritesInput) EXPECT_EQ(Damage(), "");
  }
}

TEST_P(RuntimeContract, TimesAreTheDevicesAndGrowWithTheWork) {
  // One thread, so that the compiler can neither shorten the chain nor spread
  // it out.
  const auto time_of = [&](int64_t steps) {
    Create(Launched(ModuleBuilder(GetParam().chain(steps), GetParam().name),
                    {.entry = "chain", .outputs = 1, .groups = 1, .group = 1}));
    EXPECT_EQ(failure(), "");
    EXPECT_EQ(TextOf(runtime().Call()), "");
    int64_t best = std::numeric_limits<int64_t>::max();
    for (int i = 0; i < 5; ++i) {
      const SteadyTime start = RealClock().Steady();
      const int64_t elapsed_ns = TimeOf(4);
      // A simulated device has a clock of its own.
      if (!device_.simulated()) {
        EXPECT_LE(elapsed_ns, RealClock().Steady().ns - start.ns);
      }
      best = std::min(best, elapsed_ns);
    }
    return best;
  };
  // Ten times the work; a busy machine makes the short one look longer.
  const int64_t steps = GetParam().chain_steps;
  const int64_t shorter = time_of(steps);
  EXPECT_GT(time_of(10 * steps), 4 * shorter);
}

TEST_P(RuntimeContract, EvictionLeavesResultsAlone) {
  Create(Adding(), /*evict_bytes=*/1 << 20);
  ASSERT_EQ(TextOf(runtime().Evict()), "");
  TimeOf(1);
  ASSERT_EQ(TextOf(runtime().Evict()), "");
  EXPECT_EQ(Output()[100], 400);
  EXPECT_EQ(Damage(), "");
}

TEST_P(RuntimeContract, ManyCallsAtOnceAreAllTimed) {
  Create(Adding());
  ASSERT_EQ(TextOf(runtime().Call()), "");
  // More than are kept in flight, each of at least a nanosecond.
  EXPECT_GT(TimeOf(1500), 1500);
  EXPECT_EQ(Output()[255], 1020);
}

TEST_P(RuntimeContract, ADeviceThatIsNotThereIsTheBoardsFault) {
  device_.set_selector(GetParam().no_such_device);
  EXPECT_THAT(WhyNot(Adding()), AllOf(StartsWith("OUTCOME_DEVICE_FAULT"),
                                      HasSubstr(GetParam().no_such_device)));
}

// The processors' runtime runs shared objects, which only a process of its own
// may do: board_test has its contract.
TEST(RuntimeListTest, EveryKindOfDeviceIsHeldToTheContract) {
  std::set<std::string> listed, tested = {"cpu"};
  for (const RuntimeKind& kind : RuntimeKinds()) {
    listed.insert(std::string(kind.kind));
  }
  for (const DeviceKind& kind : DeviceKinds()) tested.insert(kind.name);
  EXPECT_EQ(listed, tested);
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
}  // namespace regatta::testing
