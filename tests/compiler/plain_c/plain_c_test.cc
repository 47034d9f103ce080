// A target of a new kind, added as docs/recipes.md says: its own files in this
// folder and entries in the lists. It gets the spaces, schedules, lowering and
// checks that every target gets.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/compile.h"
#include "compiler/module/tensor_bytes.h"
#include "compiler/ops/op.h"
#include "tests/compiler/device_code_checks.h"
#include "tests/compiler/device_support.h"
#include "tests/compiler/plain_c/plain_c_code_generator.h"
#include "tests/compiler/print_params.h"
#include "tests/compiler/schedule_sweep.h"
#include "tests/support/process.h"

namespace regatta {
namespace {

constexpr int kSchedules = 100;  // of every operator at full scale

// All that a board does with a module, for a device that is a C compiler.
std::vector<TensorValues> RunPlainC(const Module& module,
                                    const std::vector<TensorValues>& inputs) {
  const testing::TempDir dir;
  testing::WriteFile(dir.path() + "/k.c", module.loadable);
  const testing::ProcessResult built = testing::RunProcess(
      {REGATTA_C_COMPILER, "-std=c11", "-O1", "-ffp-contract=off", "-shared",
       "-fPIC", dir.path() + "/k.c", "-o", dir.path() + "/k.so", "-lm"});
  EXPECT_EQ(built.exit_code, 0) << built.err << module.loadable;
  void* library = dlopen((dir.path() + "/k.so").c_str(), RTLD_NOW);
  EXPECT_NE(library, nullptr);
  if (library == nullptr) return {};
  std::vector<std::string> memory;
  std::vector<void*> buffers;
  size_t next = 0;
  for (const ModuleBuffer& buffer : module.buffers) {
    memory.push_back(buffer.role == BufferRole::kInput
                         ? ValuesToBytes(inputs[next++], buffer.dtype)
                         : std::string(buffer.bytes, '\xff'));
  }
  for (std::string& bytes : memory) buffers.push_back(bytes.data());
  for (const int index : module.host_sequence) {
    const std::string entry = module.kernels[index].entry + "_all";
    const auto run =
        reinterpret_cast<void (*)(void* const*)>(dlsym(library, entry.c_str()));
    EXPECT_NE(run, nullptr) << entry;
    if (run != nullptr) run(buffers.data());
  }
  dlclose(library);
  std::vector<TensorValues> outputs;
  for (size_t i = 0; i < module.buffers.size(); ++i) {
    const ModuleBuffer& buffer = module.buffers[i];
    if (buffer.role != BufferRole::kOutput) continue;
    outputs.push_back(ReadValues(memory[i].data(),
                                 buffer.bytes / DTypeBytes(buffer.dtype),
                                 buffer.dtype));
  }
  return outputs;
}

class PlainCSweep : public ::testing::TestWithParam<Op> {};
INSTANTIATE_TEST_SUITE_P(Operators, PlainCSweep,
                         ::testing::ValuesIn(Ops().begin(), Ops().end()),
                         [](const auto& info) { return info.param.name; });

TEST_P(PlainCSweep, SchedulesAreRight) {
  ExpectRightSchedules(GetParam(), CompleteTargetOf("plain_c"), kSchedules, 3,
                       "plain C", RunPlainC);
}

TEST(PlainC, CastsAndNotANumberAreDefined) {
  const Target target = CompleteTargetOf("plain_c");
  ExpectDefinedCorners(target, RunPlainC);
  ExpectDefinedCastsOfF64(target, RunPlainC);
}

TEST(PlainC, IsATargetLikeAnyOther) {
  const Target target = CompleteTargetOf("plain_c");
  EXPECT_EQ(target.ToString(), "plain_c,max_group=64");
  EXPECT_THAT(CompilerVersion(target), ::testing::EndsWith("/C 11"));
  EXPECT_FALSE(CompleteTarget(*ParseTarget("plain_c,mcpu=abacus")).ok());
  const auto workload = ParseWorkload("matmul(m=8,n=8,k=8)");
  ASSERT_TRUE(workload.ok());
  const auto space = CreateSpace(*workload, target, 1);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(space->name(), plain_c::kKind);
  EXPECT_THAT(space->Print(space->Default()),
              ::testing::StartsWith("threads{"));
}

}  // namespace
}  // namespace regatta
