// What candidates do to a board, the whole way: each planted fault costs its
// own trial, the outcome says what happened, nothing of it is left, and the
// next trial is as good as ever.
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tests/device_agent/planted_list.h"
#include "tests/device_agent/runner_fixture.h"

namespace regatta {
namespace {

constexpr auto& kWorkload = kPlantedWorkload;

// What machines without cgroups, namespaces and filters have.
const std::vector<std::string> kPoor = {"cgroup",  "seccomp", "landlock",
                                        "mountns", "netns",   "ipcns"};

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
  v1::TrialSpec Planted(const Fault& fault, const std::string& path) {
    v1::TrialSpec spec = Trial(kWorkload);
    spec.mutable_schedule()->set_text(PlantedSchedule(fault, path));
    return spec;
  }
  // As an agent's key: for this user alone.
  std::string MakeKeyFile() {
    std::string path = StateDir() + "/builder.key";
    std::ofstream(path) << "secret";
    EXPECT_EQ(chmod(path.c_str(), 0600), 0);
    return path;
  }
  // `run_limit_ms`: short where running over it is the fault, generous where
  // another end must come first on a busy machine.
  RunnerOptions Options(int64_t run_limit_ms = 2000) {
    RunnerOptions options;
    options.build_worker = "regatta-build-worker-planted";
    options.run_limit_ms = run_limit_ms;
    options.run_memory_bytes = kPlantedMemoryBytes;
    return options;
  }
};
class PlantedFaultTest : public FaultTest,
                         public ::testing::WithParamInterface<Case> {};

TEST_P(PlantedFaultTest, CostsItsOwnTrialOnly) {
  const std::vector<std::string> without =
      GetParam().poor ? kPoor : std::vector<std::string>();
  const Fault& fault = GetParam().fault;
  const bool slow = fault.outcome == v1::OUTCOME_TIMED_OUT ||
                    fault.poor_outcome == v1::OUTCOME_TIMED_OUT;
  StartRunner(Options(slow ? 2000 : 20'000), without);
  if (GetParam().poor && fault.needs_user && geteuid() != 0) {
    GTEST_SKIP() << kNeedsUser;
  }
  const std::string path = fault.name == "read_file"
                               ? MakeKeyFile()
                               : StateDir() + "/planted-" + fault.name;
  const v1::TrialResult result = RunOne(Planted(fault, path));
  EXPECT_EQ(
      v1::Outcome_Name(result.outcome()),
      v1::Outcome_Name(GetParam().poor ? fault.poor_outcome : fault.outcome))
      << result.detail();
  EXPECT_NE(
      result.detail().find(GetParam().poor ? fault.poor_detail : fault.detail),
      std::string::npos)
      << result.detail();
  if (result.outcome() == v1::OUTCOME_TIMED_OUT) {
    EXPECT_EQ(result.detail().rfind("killed after 2.0 s ", 0), 0u)
        << result.detail();
  }
  if (result.outcome() == v1::OUTCOME_OUT_OF_MEMORY) {
    EXPECT_NE(result.detail().find(" 256 MiB "), std::string::npos)
        << result.detail();
  }
  if (result.outcome() != v1::OUTCOME_OK) EXPECT_EQ(result.time_ns(), 0);
  if (fault.name == "write_file" || fault.name == "create_file") {
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  // The result comes after the end: nothing but the build worker is left now,
  // not within two seconds.
  EXPECT_EQ(ProcessTree::Read().Descendants(spawner_->pid()).size(), 1u);
  const v1::TrialResult next = RunOne(Trial(kWorkload, 2));
  EXPECT_EQ(next.outcome(), v1::OUTCOME_OK) << next.detail();
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Fault& fault : PlantedFaults()) {
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

// What read_file found out above it found out by trying.
TEST_F(FaultTest, AFileThatACandidateMayReadItReads) {
  StartRunner(Options(20'000), kPoor);
  const std::vector<Fault> faults = PlantedFaults();
  const auto read = std::find_if(
      faults.begin(), faults.end(),
      [](const Fault& fault) { return fault.name == "read_file"; });
  const v1::TrialResult result = RunOne(Planted(*read, "/etc/passwd"));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_CRASHED);
  EXPECT_EQ(result.detail(), "call 1 returned 43 (an unknown code)");
}

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
    ::testing::Values(Case{{"crash_compiler", v1::OUTCOME_COMPILE_ERROR,
                            "the build worker ended with SIGABRT"},
                           false},
                      // As the host's kernel does when it lacks memory.
                      Case{{"kill_compiler", v1::OUTCOME_DEVICE_FAULT,
                            "the build worker was killed from outside"},
                           false},
                      Case{{"hang_compiler", v1::OUTCOME_TIMED_OUT,
                            "the build took more than 1 s"},
                           false}),
    [](const auto& info) { return info.param.fault.name; });

}  // namespace
}  // namespace regatta
