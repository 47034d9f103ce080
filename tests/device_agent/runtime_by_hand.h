// What a run worker does with a device's runtime, by hand: for tests of
// ModuleRuntimes on modules that compute one tensor c from two, a and b.
#ifndef REGATTA_TESTS_DEVICE_AGENT_RUNTIME_BY_HAND_H_
#define REGATTA_TESTS_DEVICE_AGENT_RUNTIME_BY_HAND_H_

#include <string>
#include <vector>

#include "base/clock.h"
#include "device_agent/run/runtime_list.h"
#include "tests/device_agent/device_support.h"

namespace regatta::testing {

// Elements of a, b and, unless a test says otherwise, c.
inline constexpr int64_t kElements = 256;

struct OneLaunch {
  std::string entry = "add";
  int64_t outputs = kElements;
  int64_t groups = kElements / 64;
  int64_t group = 64;
  int64_t shared_bytes = 0;
};

// A module of one launch with a, b and c.
inline ModuleBuilder Launched(ModuleBuilder builder, const OneLaunch& launch) {
  const int a = builder.Buffer(BufferRole::kInput, "a", kElements);
  const int b = builder.Buffer(BufferRole::kInput, "b", kElements);
  const int c = builder.Buffer(BufferRole::kOutput, "c", launch.outputs);
  builder.Launch(launch.entry, {a, b, c}, {launch.groups}, {launch.group},
                 launch.shared_bytes);
  return builder;
}

class RuntimeByHand {
 public:
  // Of `builder`'s module, ready for calls unless failure() says why not.
  // `device`: its selector.
  void Create(const ModuleBuilder& builder, const std::string& device,
              int64_t evict_bytes = 0) {
    created_ = {};
    module_ = builder.module();
    RuntimeOptions options;
    options.clock = &RealClock();
    options.host_clock = &RealClock();
    options.device = device;
    options.evict_bytes = evict_bytes;
    created_ = CreateRuntime(module_, options);
    EXPECT_EQ(created_.runtime == nullptr, created_.failure.has_value());
    if (created_.runtime == nullptr) return;
    ASSERT_EQ(TextOf(runtime().SetInputs(inputs_)), "");
    ASSERT_TRUE(runtime().Tighten().ok());
    ASSERT_EQ(TextOf(runtime().Poison(0xFF)), "");
  }
  // Why there is no runtime; "": there is one.
  std::string failure() const { return TextOf(created_.failure); }
  ModuleRuntime& runtime() { return *created_.runtime; }

  std::vector<double> Output() {
    std::vector<const void*> outputs;
    EXPECT_EQ(TextOf(runtime().ReadOutputs(&outputs)), "");
    return ReadValues(outputs.at(0), kElements, DType::kF32);
  }
  std::string Damage() {
    std::string damage;
    EXPECT_EQ(TextOf(runtime().FindDamage(&damage)), "");
    return damage;
  }
  int64_t TimeOf(int64_t calls) {
    int64_t elapsed_ns = 0;
    EXPECT_EQ(TextOf(runtime().TimeCalls(calls, &elapsed_ns)), "");
    EXPECT_GT(elapsed_ns, 0);
    return elapsed_ns;
  }

 private:
  // a[i] = i, b[i] = 3 i.
  static std::vector<GuardedMemory> Inputs() {
    std::vector<std::vector<double>> tensors(2);
    for (int i = 0; i < kElements; ++i) {
      tensors[0].push_back(i);
      tensors[1].push_back(3 * i);
    }
    return HostTensors(tensors);
  }

  // The runtime refers to both.
  std::vector<GuardedMemory> inputs_ = Inputs();
  Module module_;
  RuntimeOrFailure created_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_DEVICE_AGENT_RUNTIME_BY_HAND_H_
