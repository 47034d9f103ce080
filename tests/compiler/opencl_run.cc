#include "tests/compiler/opencl_run.h"

#include <string>
#include <utility>

#include "base/clock.h"
#include "compiler/module/tensor_bytes.h"

namespace regatta {

std::vector<TensorValues> OpenClCodeTest::Run(
    const Module& module, const std::vector<TensorValues>& inputs) const {
  std::vector<GuardedMemory> memory;
  const auto given = module.BuffersWithRole(BufferRole::kInput);
  for (size_t i = 0; i < given.size(); ++i) {
    auto allocated =
        GuardedMemory::Allocate(given[i]->name, given[i]->bytes, 64);
    EXPECT_TRUE(allocated.ok()) << allocated.status();
    WriteValues(inputs[i], given[i]->dtype, allocated->data());
    memory.push_back(*std::move(allocated));
  }
  const RuntimeOptions options{.clock = &RealClock(),
                               .device = device_.selector()};
  RuntimeOrFailure created = CreateOpenClRuntime(module, options);
  EXPECT_EQ(testing::TextOf(created.failure), "") << module.loadable;
  std::vector<TensorValues> outputs;
  if (created.runtime == nullptr) return outputs;
  ModuleRuntime& runtime = *created.runtime;
  std::vector<const void*> found;
  std::string damage;
  const auto step = [](const MaybeFailure& failure) {
    EXPECT_EQ(testing::TextOf(failure), "");
    return !failure.has_value();
  };
  const bool ran = step(runtime.SetInputs(memory)) &&
                   step(runtime.Poison(0xFF)) && step(runtime.Call()) &&
                   step(runtime.FindDamage(&damage)) &&
                   step(runtime.ReadOutputs(&found));
  EXPECT_EQ(damage, "") << module.loadable;
  const auto wanted = module.BuffersWithRole(BufferRole::kOutput);
  for (size_t i = 0; ran && i < wanted.size(); ++i) {
    const int64_t elements = wanted[i]->bytes / DTypeBytes(wanted[i]->dtype);
    outputs.push_back(ReadValues(found[i], elements, wanted[i]->dtype));
  }
  return outputs;
}

}  // namespace regatta
