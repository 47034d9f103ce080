// What candidates do to a board, the whole way: each planted fault costs its
// own trial, the outcome says what happened, nothing of it is left, and the
// next trial is as good as ever.
#include <unistd.h>

#include "tests/device_agent/runner_fixture.h"

namespace regatta {
namespace {

constexpr char kWorkload[] = "B[i] = A[i] * 2 where i=1000";
constexpr int64_t kMemoryBytes = 256 << 20;

// What a fault must come to, with the best sandbox and with rlimits alone.
struct Fault {
  std::string name;
  v1::Outcome outcome;
  std::string detail;  // part of it
  v1::Outcome poor_outcome;
  std::string poor_detail;
};
Fault Same(const std::string& name, v1::Outcome outcome,
           const std::string& detail) {
  return {name, outcome, detail, outcome, detail};
}

const Fault kFaults[] = {
    Same("honest", v1::OUTCOME_OK, ""),
    Same("threaded", v1::OUTCOME_OK, ""),
    Same("crash", v1::OUTCOME_CRASHED, "SIGSEGV at address 0x10, in call 1"),
    Same("overflow_stack", v1::OUTCOME_CRASHED, "SIGSEGV at address 0x"),
    Same("abort", v1::OUTCOME_CRASHED, "SIGABRT, in call 1"),
    Same("illegal_instruction", v1::OUTCOME_CRASHED, "SIGILL, in call 1"),
    Same("exit", v1::OUTCOME_CRASHED,
         "ended the process with exit code 0 in the first call"),
    Same("hang", v1::OUTCOME_TIMED_OUT, "killed after 2.0 s in the first call"),
    Same("hang_later", v1::OUTCOME_TIMED_OUT,
         "killed after 2.0 s while being timed"),
    Same("alloc", v1::OUTCOME_OUT_OF_MEMORY,
         "needs more than the limit of 256 MiB in the first call"),
    Same("oob_write", v1::OUTCOME_CRASHED, "bytes past the end of output B"),
    Same("oob_near", v1::OUTCOME_WRONG_RESULT,
         "bytes after output B were overwritten"),
    Same("write_input", v1::OUTCOME_CRASHED,
         "in input A, which is read-only, in call 1"),
    Same("wrong", v1::OUTCOME_WRONG_RESULT, "output B element 777 of 1000"),
    Same("partial", v1::OUTCOME_WRONG_RESULT, "output B element 999 of 1000"),
    Same("wrong_later", v1::OUTCOME_WRONG_RESULT,
         "after timing: output B element 0 of 1000"),
    Same("return_error", v1::OUTCOME_CRASHED,
         "call 1 returned 3 (a misaligned argument)"),
    Same("lie", v1::OUTCOME_CRASHED, "no sensible answer in the first call"),
    {"forkbomb", v1::OUTCOME_SANDBOX_VIOLATION, "SIGSYS: clone(), in call 1",
     v1::OUTCOME_SANDBOX_VIOLATION, "more than 64 processes and threads"},
    {"open_socket", v1::OUTCOME_SANDBOX_VIOLATION,
     "SIGSYS: socket(), in call 1", v1::OUTCOME_OK, ""},
    {"write_file", v1::OUTCOME_SANDBOX_VIOLATION, "SIGSYS: openat(), in call 1",
     v1::OUTCOME_OK, ""},
    {"kill_self", v1::OUTCOME_SANDBOX_VIOLATION, "SIGSYS: kill(), in call 1",
     v1::OUTCOME_DEVICE_FAULT, "killed from outside in the first call"},
    // With rlimits alone the other user protects everybody but itself.
    {"kill_others", v1::OUTCOME_SANDBOX_VIOLATION, "SIGSYS: kill(), in call 1",
     v1::OUTCOME_OK, ""},
};

struct Case {
  Fault fault;
  bool poor;
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.fault.name; }

class FaultTest : public RunnerTest {
 protected:
  v1::TrialSpec Planted(const std::string& fault, int64_t ordinal) {
    v1::TrialSpec spec = Trial(kWorkload, ordinal);
    spec.mutable_schedule()->set_text("planted{fault=" + fault + "}");
    return spec;
  }
  // `run_limit_ms`: short where running over it is the fault, generous where
  // another end must come first on a busy machine.
  RunnerOptions Options(int64_t run_limit_ms = 2000) {
    RunnerOptions options;
    options.build_worker = "regatta-build-worker-planted";
    options.run_limit_ms = run_limit_ms;
    options.run_memory_bytes = kMemoryBytes;
    return options;
  }
};
class PlantedFaultTest : public FaultTest,
                         public ::testing::WithParamInterface<Case> {};

TEST_P(PlantedFaultTest, CostsItsOwnTrialOnly) {
  std::vector<std::string> without;
  if (GetParam().poor) {
    without = {"cgroup", "seccomp", "landlock", "mountns", "netns", "ipcns"};
  }
  const Fault& fault = GetParam().fault;
  const bool slow = fault.outcome == v1::OUTCOME_TIMED_OUT ||
                    fault.poor_outcome == v1::OUTCOME_TIMED_OUT;
  StartRunner(Options(slow ? 2000 : 20'000), without);
  if (GetParam().poor && fault.name == "kill_others" && geteuid() != 0) {
    GTEST_SKIP() << "neither another user nor seccomp: it would kill this test";
  }
  const v1::TrialResult result = RunOne(Planted(fault.name, 1));
  EXPECT_EQ(
      v1::Outcome_Name(result.outcome()),
      v1::Outcome_Name(GetParam().poor ? fault.poor_outcome : fault.outcome))
      << result.detail();
  EXPECT_NE(
      result.detail().find(GetParam().poor ? fault.poor_detail : fault.detail),
      std::string::npos)
      << result.detail();
  if (result.outcome() != v1::OUTCOME_OK) EXPECT_EQ(result.time_ns(), 0);
  // The result comes after the end: nothing but the build worker is left now,
  // not within two seconds.
  EXPECT_EQ(ProcessTree::Read().Descendants(spawner_->pid()).size(), 1u);
  const v1::TrialResult next = RunOne(Trial(kWorkload, 2));
  EXPECT_EQ(next.outcome(), v1::OUTCOME_OK) << next.detail();
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Fault& fault : kFaults) {
    cases.push_back({fault, false});
    cases.push_back({fault, true});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Faults, PlantedFaultTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) {
                           return info.param.fault.name +
                                  (info.param.poor ? "_with_rlimits_only" : "");
                         });

TEST_F(FaultTest, OneThatHangsInAGroupCostsTheOthersNothing) {
  StartRunner(Options());
  std::vector<v1::TrialSpec> trials = {Trial(kWorkload, 1),
                                       Planted("hang_later", 2),
                                       Planted("hang", 3), Trial(kWorkload, 4)};
  for (v1::TrialSpec& trial : trials) trial.set_kind(v1::TRIAL_KIND_RACE);
  runner_->Start(Assign(trials, v1::ASSIGNMENT_MODE_INTERLEAVE));
  const std::vector<ResultLog::Entry> entries = log_.Wait(4);
  ASSERT_EQ(entries.size(), 4u);
  for (const ResultLog::Entry& entry : entries) {
    const v1::TrialResult& result = entry.result;
    const int64_t ordinal = result.spec().ordinal();
    if (ordinal == 1 || ordinal == 4) {
      EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
      EXPECT_GE(result.blocks_size(), 6);
    } else {
      EXPECT_EQ(result.outcome(), v1::OUTCOME_TIMED_OUT) << result.detail();
      EXPECT_EQ(result.detail(), ordinal == 2
                                     ? "killed after 2.0 s while being timed"
                                     : "killed after 2.0 s in the first call");
    }
  }
}

TEST_F(FaultTest, ABuildThatOnlyAUsedWorkerDiesOfSucceedsInAFreshOne) {
  StartRunner(Options());
  EXPECT_EQ(RunOne(Trial(kWorkload, 1)).outcome(), v1::OUTCOME_OK);
  const v1::TrialResult result = RunOne(Planted("crash_used_compiler", 2));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
}

class BuildFaultTest : public PlantedFaultTest {};

TEST_P(BuildFaultTest, ABuildWorkerIsReplaced) {
  RunnerOptions options = Options();
  options.build_limit_ms = 1000;
  StartRunner(options);
  const v1::TrialResult result = RunOne(Planted(GetParam().fault.name, 1));
  EXPECT_EQ(v1::Outcome_Name(result.outcome()),
            v1::Outcome_Name(GetParam().fault.outcome));
  EXPECT_EQ(result.detail(), GetParam().fault.detail);
  const v1::TrialResult next = RunOne(Trial(kWorkload, 2));
  EXPECT_EQ(next.outcome(), v1::OUTCOME_OK) << next.detail();
}

INSTANTIATE_TEST_SUITE_P(
    Faults, BuildFaultTest,
    ::testing::Values(Case{Same("crash_compiler", v1::OUTCOME_COMPILE_ERROR,
                                "the build worker ended with SIGABRT"),
                           false},
                      Case{Same("hang_compiler", v1::OUTCOME_TIMED_OUT,
                                "the build took more than 1 s"),
                           false}),
    [](const auto& info) { return info.param.fault.name; });

}  // namespace
}  // namespace regatta
