// What trials on every kind of device must hold.
#include "device_agent/measure/trial_timer.h"
#include "gmock/gmock.h"
#include "tests/device_agent/device_contract/device_trials.h"

namespace regatta::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class TrialsContract : public DeviceTrialsTest,
                       public ::testing::WithParamInterface<DeviceKind> {
 protected:
  TrialsContract() : DeviceTrialsTest(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Kinds, TrialsContract,
                         ::testing::ValuesIn(DeviceKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TrialsContract, DevicesAreFoundInTheSandboxTheSameEveryTime) {
  const std::string simulated = device_.info.simulated() ? "simulated-" : "";
  EXPECT_EQ(device_.info.device_id(), simulated + "lab-" + kind_.name + "0");
  EXPECT_THAT(device_.info.device_class(),
              StartsWith(simulated + kind_.name + "-"));
  EXPECT_THAT(device_.info.target(), StartsWith(kind_.name + ","));
  EXPECT_NE(device_.info.driver_version(), "");
  EXPECT_EQ(device_.info.credit(), 2);
  EXPECT_EQ(device_.info.compiler_version(), "planted");
  const auto again = kind_.provider().Find(board_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->front().info.SerializeAsString(),
            device_.info.SerializeAsString());
}

TEST_P(TrialsContract, TheProbeMeasuresTheDevice) {
  CpuProbeOptions options;
  int parts = 0;
  options.exclusively = [&](const std::function<void()>& part) {
    ++parts;
    part();
    return absl::OkStatus();
  };
  const auto found = kind_.provider().Probe(board_, device_, options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_GE(parts, 1);
  // From the slowest device to the fastest of many years.
  EXPECT_GT(found->peak_flops_per_s, 1e8);
  EXPECT_LT(found->peak_flops_per_s, 1e16);
  EXPECT_GT(found->bandwidth_bytes_per_s, 1e7);
  EXPECT_LT(found->bandwidth_bytes_per_s, 1e14);
  EXPECT_GE(found->noise_floor, 0);
}

TEST_P(TrialsContract, EveryFaultCostsItsOwnTrialOnly) {
  StartDevice();
  std::vector<PlantedFault> rows = {
      {"wrong", v1::OUTCOME_WRONG_RESULT, "output B element 777 of 1000"},
      {"partial", v1::OUTCOME_WRONG_RESULT, "output B element 999 of 1000"},
      {"oob_near", v1::OUTCOME_WRONG_RESULT,
       "4 bytes after output B were overwritten"},
      {"write_input", v1::OUTCOME_WRONG_RESULT, "input A was overwritten"},
      {"no_compile", v1::OUTCOME_COMPILE_ERROR, "abacus"},
      {"no_kernel", v1::OUTCOME_COMPILE_ERROR, "elsewhere"},
      {"huge_group", v1::OUTCOME_REFUSED, "1048576"},
      {"much_memory", v1::OUTCOME_OUT_OF_MEMORY, "workspace w"},
  };
  rows.insert(rows.end(), kind_.own_faults.begin(), kind_.own_faults.end());
  for (const PlantedFault& row : rows) {
    v1::TrialResult bad = RunPlanted(row.name);
    // A machine too busy to let a kernel run says so, of the board: tried
    // again, as often as a tracker would.
    for (int i = 1; i < 3 && bad.outcome() == v1::OUTCOME_DEVICE_FAULT &&
                    bad.detail().find("overloaded") != std::string::npos;
         ++i) {
      bad = RunPlanted(row.name);
    }
    EXPECT_EQ(bad.outcome(), row.outcome) << row.name << ": " << bad.detail();
    EXPECT_THAT(bad.detail(), HasSubstr(row.detail)) << row.name;
    EXPECT_EQ(bad.blocks_size(), 0) << row.name;
    EXPECT_THAT(KeptWorkers(), IsEmpty()) << row.name;
    // Elsewhere every trial has a worker of its own.
    if (!device_.needs.keep_worker && &row != &rows.back()) continue;
    const v1::TrialResult honest = RunPlanted("honest");
    EXPECT_EQ(honest.outcome(), v1::OUTCOME_OK)
        << "after " << row.name << ": " << honest.detail();
    EXPECT_GT(honest.blocks_size(), 0);
  }
}

TEST_P(TrialsContract, ResultsSayOnWhatTheyWereTakenAndUnderWhichSandbox) {
  StartDevice();
  const v1::TrialResult result = RunPlanted("honest");
  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
  EXPECT_GT(result.time_ns(), 0);
  EXPECT_EQ(result.environment().driver_version(),
            device_.info.driver_version());
  EXPECT_THAT(result.environment().sandbox(),
              ::testing::Not(HasSubstr("tight")));
  if (device_.needs.all_cores) {
    EXPECT_EQ(result.timed_cpu_list(), device_.info.cpu_list());
  }
}

TEST_P(TrialsContract, TrialsAreTimedAlternatelyAndTheSlowOneIsSlower) {
  StartDevice();
  std::vector<v1::TrialSpec> trials = {
      Planted("honest", 1), Planted("honest_too", 2), Planted("slow", 3)};
  for (v1::TrialSpec& trial : trials) trial.set_kind(v1::TRIAL_KIND_CONFIRM);
  runner_->Start(Assign(trials, v1::ASSIGNMENT_MODE_INTERLEAVE));
  const std::vector<ResultLog::Entry> entries = log_.Wait(3);
  ASSERT_EQ(entries.size(), 3u);
  for (const ResultLog::Entry& entry : entries) {
    EXPECT_EQ(entry.result.outcome(), v1::OUTCOME_OK) << entry.result.detail();
    EXPECT_GE(entry.result.blocks_size(), TrialTimer::kFewestRounds);
  }
  EXPECT_GT(entries[2].result.time_ns(), entries[0].result.time_ns());
  // Workers of their own, where any are kept.
  EXPECT_EQ(KeptWorkers().size(), device_.needs.keep_worker ? 3u : 0u);
}

TEST_P(TrialsContract, ColdTrialsAreTimedAsWell) {
  StartDevice();
  v1::TrialSpec spec = Planted("honest", 1);
  spec.mutable_policy()->set_cache(v1::CACHE_STATE_COLD);
  const v1::TrialResult result = RunOne(spec);
  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
}

TEST_P(TrialsContract, StoppingKillsWhatRuns) {
  StartDevice();
  ASSERT_EQ(RunPlanted("honest").outcome(), v1::OUTCOME_OK);
  v1::Assignment assignment = Assign({Planted("hang", 90)});
  runner_->Start(assignment);
  runner_->Stop(assignment.assignment_id());
  EXPECT_EQ(RunPlanted("honest").outcome(), v1::OUTCOME_OK);
}

TEST_P(TrialsContract, AMachineWithoutNamespacesServesThemToo) {
  const std::vector<std::string> without = {"cgroup", "mountns", "netns",
                                            "ipcns", "landlock"};
  Find(without);
  StartDevice(without);
  const v1::TrialResult result = RunPlanted("honest");
  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
}

TEST_P(TrialsContract, ARequiredFeatureThatADriverLeavesNoRoomForIsSaid) {
  auto spawner = SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner");
  ASSERT_TRUE(spawner.ok());
  if (std::count((*spawner)->sandbox().begin(), (*spawner)->sandbox().end(),
                 kTightFeature) == 0) {
    GTEST_SKIP() << "no feature \"tight\" here";
  }
  RunnerOptions options;
  options.worker_dir = REGATTA_BIN_DIR;
  options.lock_folder = StateDir();
  options.required_sandbox = {kTightFeature};
  options.devices = {device_};
  const auto runner = CreateTrialRunner(options, *spawner, nullptr);
  EXPECT_EQ(runner.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(runner.status().message()),
              HasSubstr(device_.info.device_id()));
  EXPECT_THAT(std::string(runner.status().message()), HasSubstr("tight"));
}

}  // namespace
}  // namespace regatta::testing
