// A board's programs for 64-bit ARM, run by QEMU's user mode, with modules that
// this machine's compiler made for them.
#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/memory_file.h"
#include "compiler/compile.h"
#include "compiler/ops/op.h"
#include "device_agent/build/compiler_module_source.h"
#include "device_agent/measure/driver_question.h"
#include "device_agent/measure/run_client.h"
#include "device_agent/spawner/spawner_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMatmul[] = "matmul(m=64,n=64,k=64)";
constexpr int64_t kPatienceMs = 60'000;

// A run worker of an emulated processor, asked as an agent asks it.
class ArmBoardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = REGATTA_ARM_MISSING; !missing.empty()) {
      GTEST_SKIP() << missing;
    }
    auto spawner = SpawnerClient::Start(REGATTA_ARM_BIN_DIR "/regatta-spawner",
                                        {}, Emulator("max"));
    ASSERT_TRUE(spawner.ok()) << spawner.status();
    spawner_ = *std::move(spawner);
  }

  static std::vector<std::string> Emulator(const std::string& cpu) {
    return {REGATTA_QEMU, "-cpu", cpu, "-L", "/"};
  }
  // The same, counting instructions.
  static std::vector<std::string> Counting(const std::string& cpu) {
    std::vector<std::string> words = Emulator(cpu);
    words.insert(words.end(), {"-plugin", REGATTA_INSTRUCTION_COUNT});
    return words;
  }
  RunWorkerOptions Options(std::vector<std::string> prefix) {
    RunWorkerOptions options;
    options.program = REGATTA_ARM_BIN_DIR "/regatta-run-worker";
    options.exec_prefix = std::move(prefix);
    options.wall_limit_ms = kPatienceMs;
    options.memory_bytes = int64_t{1} << 30;
    return options;
  }

  static Target TargetOf(const std::string& mcpu) {
    Target target;
    target.triple = "aarch64-linux-gnu";
    target.mcpu = mcpu;
    auto complete = CompleteTarget(target);
    EXPECT_TRUE(complete.ok()) << complete.status();
    return *complete;
  }
  // The module of `schedule`, the default one when it is "".
  UniqueFd Module(const Target& target, const std::string& workload,
                  std::string schedule = "") {
    const auto space = CreateSpace(*ParseWorkload(workload), target, 1);
    EXPECT_TRUE(space.ok()) << space.status();
    if (schedule.empty()) schedule = space->Print(space->Default());
    v1::ModuleRequest request;
    request.set_workload(workload);
    request.set_target(target.ToString());
    request.set_threads(1);
    request.mutable_schedule()->set_space(std::string(space->name()));
    request.mutable_schedule()->set_space_version(kSpaceVersion);
    request.mutable_schedule()->set_text(schedule);
    const auto built = source_.Build(request);
    EXPECT_TRUE(built.ok()) << built.status();
    reduction_length_ = built->reduction_length;
    return *SealedMemoryFile("module", SerializeModule(built->module));
  }
  // Made on the board, checked by the interpreter's values.
  UniqueFd Reference(const Target& target, const std::string& workload) {
    v1::ReferenceRequest request;
    request.set_workload(workload);
    request.set_target(target.ToString());
    request.set_input_seed(17);
    request.set_samples(1000);
    auto built = source_.BuildReference(request);
    EXPECT_TRUE(built.ok()) << built.status();
    v1::RunRequest run;
    run.set_input_seed(17);
    run.set_threads(1);
    run.set_make_reference(true);
    run.set_reduction_length(built->code.reduction_length);
    for (const v1::SampledOutput& output : built->outputs) {
      *run.add_samples() = output;
    }
    const UniqueFd module =
        *SealedMemoryFile("reference", SerializeModule(built->code.module));
    UniqueFd file = *CreateMemoryFile("reference");
    auto worker = RunClient::Start(Options(Emulator(target.mcpu)), spawner_,
                                   run, module.get(), file.get());
    EXPECT_TRUE(worker.ok()) << worker.status();
    EXPECT_TRUE((*worker)->WaitVerified().has_value());
    (*worker)->End();
    EXPECT_FALSE((*worker)->ending().has_value())
        << (*worker)->ending()->detail;
    return file;
  }

  struct Run {
    std::optional<v1::Verified> verified;
    std::optional<v1::Timed> timed;
    std::optional<Ending> ending;
  };
  Run RunTrial(std::vector<std::string> prefix, const UniqueFd& module,
               const UniqueFd& reference) {
    v1::RunRequest request;
    request.set_input_seed(17);
    request.set_threads(1);
    request.set_cache(v1::CACHE_STATE_WARM);
    request.set_reduction_length(reduction_length_);
    auto worker = RunClient::Start(Options(std::move(prefix)), spawner_,
                                   request, module.get(), reference.get());
    EXPECT_TRUE(worker.ok()) << worker.status();
    Run run;
    run.verified = (*worker)->WaitVerified();
    if (run.verified.has_value()) run.timed = (*worker)->WaitTimed();
    (*worker)->End();
    run.ending = (*worker)->ending();
    return run;
  }

  CompilerModuleSource source_{RealClock()};
  std::shared_ptr<SpawnerClient> spawner_;
  int64_t reduction_length_ = 1;
};

// QEMU passes no filter of system calls on, and its workers are not under
// Landlock, so neither may be claimed.
TEST_F(ArmBoardTest, WhatTheEmulatorDoesNotEnforceIsNotReported) {
  EXPECT_THAT(spawner_->sandbox(),
              AllOf(Not(Contains("seccomp")), Not(Contains("landlock")),
                    Not(Contains("tight")), Contains("rlimits"),
                    Contains("process_group")))
      << spawner_->SandboxText();
  const absl::Status required = spawner_->Require({"seccomp"});
  EXPECT_EQ(required.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ArmBoardTest, AModuleMadeHereIsVerifiedAndTimedThere) {
  const Target target = TargetOf("cortex-a72");
  const UniqueFd module = Module(target, kMatmul);
  const UniqueFd reference = Reference(target, kMatmul);
  const Run run = RunTrial(Emulator("cortex-a72"), module, reference);
  ASSERT_FALSE(run.ending.has_value()) << run.ending->detail;
  EXPECT_LE(run.verified->max_error(), 1);
  ASSERT_GE(run.timed->blocks_size(), 1);
  EXPECT_GT(run.timed->blocks(0).elapsed_ns(), 0);
}

TEST_F(ArmBoardTest, CountedTimesAreTheSameAtEveryRepetition) {
  const Target target = TargetOf("cortex-a72");
  const UniqueFd module = Module(target, kMatmul);
  const UniqueFd reference = Reference(target, kMatmul);
  std::vector<double> per_call;
  for (int repetition = 0; repetition < 3; ++repetition) {
    const Run run = RunTrial(Counting("cortex-a72"), module, reference);
    ASSERT_FALSE(run.ending.has_value()) << run.ending->detail;
    EXPECT_EQ(run.timed->blocks_size(), 5);
    for (const v1::Block& block : run.timed->blocks()) {
      EXPECT_GE(block.elapsed_ns(), 1'000'000);
      per_call.push_back(static_cast<double>(block.elapsed_ns()) /
                         static_cast<double>(block.calls()));
    }
  }
  for (const double time : per_call) EXPECT_EQ(time, per_call[0]);
  // 64^3 multiply-adds, four in an instruction, and what comes with them.
  EXPECT_GT(per_call[0], 64 * 64 * 64 / 4);
  EXPECT_LT(per_call[0], 64 * 64 * 64);
}

TEST_F(ArmBoardTest, ACountingBoardSaysSoAndProbesByCounting) {
  v1::RunRequest list;
  list.add_list_kinds("cpu");
  auto listed = AskRunWorker(Options(Counting("neoverse-n1")), spawner_, list);
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->devices().devices_size(), 1);
  EXPECT_EQ(listed->devices().devices(0).call_clock(),
            "instructions of 1000 ps");
  listed = AskRunWorker(Options(Emulator("neoverse-n1")), spawner_, list);
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(listed->devices().devices(0).call_clock(), "");

  v1::RunRequest probe;
  probe.set_probe_kind("cpu");
  auto probed = AskRunWorker(Options(Counting("neoverse-n1")), spawner_, probe);
  ASSERT_TRUE(probed.ok()) << probed.status();
  // Nearly every instruction of the probe is eight operations, at one a ns.
  EXPECT_GT(probed->probe().peak_flops_per_s(), 7e9);
  EXPECT_LE(probed->probe().peak_flops_per_s(), 8e9);
  EXPECT_GT(probed->probe().bandwidth_bytes_per_s(), 1e9);
  EXPECT_EQ(probed->probe().noise_floor(), 0);
}

// i8 products by sdot on a processor that has none.
TEST_F(ArmBoardTest, CodeOfAnotherProcessorCrashesAsTheCandidate) {
  const std::string workload = "matmul(m=32,n=32,k=32,dtype=i8)";
  const Target newer = TargetOf("cortex-a76");
  ASSERT_THAT(newer.products, Contains("i8x4"));
  const UniqueFd module = Module(newer, workload);
  const UniqueFd reference = Reference(TargetOf("cortex-a53"), workload);
  const Run there = RunTrial(Emulator("cortex-a76"), module, reference);
  EXPECT_FALSE(there.ending.has_value()) << there.ending->detail;
  const Run here = RunTrial(Emulator("cortex-a53"), module, reference);
  ASSERT_TRUE(here.ending.has_value());
  EXPECT_EQ(here.ending->outcome, v1::OUTCOME_CRASHED) << here.ending->detail;
  EXPECT_THAT(here.ending->detail, HasSubstr("SIGILL"));
}

}  // namespace
}  // namespace regatta
