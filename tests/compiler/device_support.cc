#include "tests/compiler/device_support.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/compile.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/codegen_support.h"
#include "tests/compiler/status_text.h"

namespace regatta {

Target CompleteTargetOf(const std::string& text) {
  const auto parsed = ParseTarget(text);
  CHECK(parsed.ok()) << parsed.status();
  const auto complete = CompleteTarget(*parsed);
  CHECK(complete.ok()) << complete.status();
  return *complete;
}

Module BuildFor(const loop::Program& program, const Target& target,
                const std::string& name) {
  const auto lowered = LowerProgram(program);
  EXPECT_TRUE(lowered.ok()) << StatusText(lowered) << "\n"
                            << loop::ToString(program);
  if (!lowered.ok()) return Module();
  const auto module =
      FindCodeGenerator(target.kind)
          ->Generate(*lowered, TensorsOnly(program), target, name);
  EXPECT_TRUE(module.ok()) << StatusText(module) << "\n"
                           << loop::ToString(program);
  return module.ok() ? *module : Module();
}

std::vector<TensorValues> WholeNumbers(const loop::Program& program,
                                       uint64_t seed) {
  Random random(seed);
  std::vector<TensorValues> inputs;
  for (const loop::Buffer& buffer : program.buffers) {
    if (buffer.scope != loop::Scope::kInput) continue;
    TensorValues values(buffer.elements);
    for (double& value : values) {
      value = static_cast<double>(random.Below(15)) - 7;
    }
    inputs.push_back(std::move(values));
  }
  return inputs;
}

}  // namespace regatta
