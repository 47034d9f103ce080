// Trials on an OpenCL device the whole way: found by a run worker, built (by
// hand), verified against the host's reference and timed in the sandbox.
#include "device_agent/devices/opencl_provider.h"
#include "device_agent/measure/trial_timer.h"
#include "gmock/gmock.h"
#include "tests/device_agent/driver_workers.h"
#include "tests/device_agent/runner_fixture.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

constexpr char kWorkload[] = "B[i] = A[i] * 2 where i=1000";

class OpenClTrialsTest : public RunnerTest {
 protected:
  // `without`: sandbox features not to use.
  void Find(const std::vector<std::string>& without = {}) {
    auto spawner =
        SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner", without);
    ASSERT_TRUE(spawner.ok()) << spawner.status();
    worker_ = std::make_unique<SpawnedRunWorker>(*spawner);
    board_.agent_id = "lab";
    board_.cpus = AllowedCpus();
    board_.host.set_device_class("host-2c");
    board_.credit = 2;
    board_.build_worker = &build_;
    board_.run_worker = worker_.get();
    const auto found = OpenClProvider().Find(board_);
    ASSERT_TRUE(found.ok()) << found.status();
    if (found->empty()) {
      GTEST_SKIP() << "no OpenCL device here: install pocl-opencl-icd or a "
                      "GPU's driver";
    }
    device_ = found->front();
    // A kernel that hangs is waited for as long.
    device_.needs.start_ms = 3'000;
  }
  void StartOpenCl(const std::vector<std::string>& without = {}) {
    Find(without);
    if (IsSkipped() || HasFatalFailure()) return;
    RunnerOptions options;
    options.build_worker = "regatta-build-worker-planted";
    options.run_limit_ms = 2'000;
    ServedDevice& served = options.devices.emplace_back(device_);
    served.info.set_device_id("here");
    served.info.set_device_class("test");
    StartRunner(options, without);
  }
  v1::TrialSpec Planted(const std::string& name, int64_t ordinal) {
    v1::TrialSpec spec = Trial(kWorkload, ordinal);
    spec.set_target(device_.info.target());
    spec.mutable_schedule()->set_space("opencl");
    spec.mutable_schedule()->set_text("planted{fault=" + name + "}");
    return spec;
  }

  Board board_;
  PlantedBuildInfo build_;
  std::unique_ptr<SpawnedRunWorker> worker_;
  ServedDevice device_;
};

TEST_F(OpenClTrialsTest, DevicesAreFoundInTheSandboxTheSameEveryTime) {
  Find();
  if (IsSkipped()) return;
  EXPECT_EQ(device_.info.device_id(), "lab-opencl0");
  EXPECT_THAT(device_.info.device_class(), ::testing::StartsWith("opencl-"));
  EXPECT_THAT(device_.info.target(), ::testing::StartsWith("opencl,"));
  EXPECT_NE(device_.info.driver_version(), "");
  EXPECT_EQ(device_.info.credit(), 2);
  EXPECT_EQ(device_.info.compiler_version(), "planted");
  const auto again = OpenClProvider().Find(board_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->front().info.SerializeAsString(),
            device_.info.SerializeAsString());
}

TEST_F(OpenClTrialsTest, TheProbeMeasuresTheDevice) {
  Find();
  if (IsSkipped()) return;
  CpuProbeOptions options;
  int parts = 0;
  options.exclusively = [&](const std::function<void()>& part) {
    ++parts;
    part();
    return absl::OkStatus();
  };
  const auto found = OpenClProvider().Probe(board_, device_, options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_GE(parts, 1);
  // From the slowest device to the fastest of many years.
  EXPECT_GT(found->peak_flops_per_s, 1e8);
  EXPECT_LT(found->peak_flops_per_s, 1e16);
  EXPECT_GT(found->bandwidth_bytes_per_s, 1e7);
  EXPECT_LT(found->bandwidth_bytes_per_s, 1e14);
  EXPECT_GE(found->noise_floor, 0);
}

TEST_F(OpenClTrialsTest, EveryFaultCostsItsOwnTrialOnly) {
  StartOpenCl();
  if (IsSkipped()) return;
  struct Row {
    std::string name;
    v1::Outcome outcome;
    std::string detail;
  };
  const std::vector<Row> rows = {
      {"wrong", v1::OUTCOME_WRONG_RESULT, "output B element 777 of 1000"},
      {"partial", v1::OUTCOME_WRONG_RESULT, "output B element 999 of 1000"},
      {"oob_near", v1::OUTCOME_WRONG_RESULT,
       "4 bytes after output B were overwritten"},
      {"write_input", v1::OUTCOME_WRONG_RESULT, "input A was overwritten"},
      {"no_compile", v1::OUTCOME_COMPILE_ERROR, "nowhere"},
      {"huge_group", v1::OUTCOME_REFUSED, "1048576 work-items"},
      {"crash", v1::OUTCOME_CRASHED, "SIGSEGV at address 0x10, in call 1"},
      {"hang", v1::OUTCOME_TIMED_OUT, "in the first call"},
      {"honest", v1::OUTCOME_OK, ""},
  };
  int64_t ordinal = 0;
  for (const Row& row : rows) {
    const v1::TrialResult result = RunOne(Planted(row.name, ++ordinal));
    EXPECT_EQ(result.outcome(), row.outcome)
        << row.name << ": " << result.detail();
    EXPECT_THAT(result.detail(), HasSubstr(row.detail)) << row.name;
    EXPECT_EQ(result.blocks_size() > 0, row.outcome == v1::OUTCOME_OK);
  }
}

TEST_F(OpenClTrialsTest, ResultsSayOnWhatTheyWereTakenAndUnderWhichSandbox) {
  StartOpenCl();
  if (IsSkipped()) return;
  const v1::TrialResult result = RunOne(Planted("honest", 1));
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

TEST_F(OpenClTrialsTest, TrialsAreTimedAlternatelyAndTheSlowOneIsSlower) {
  StartOpenCl();
  if (IsSkipped()) return;
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
}

TEST_F(OpenClTrialsTest, AMachineWithoutNamespacesServesThemToo) {
  StartOpenCl({"cgroup", "mountns", "netns", "ipcns", "landlock"});
  if (IsSkipped()) return;
  const v1::TrialResult result = RunOne(Planted("honest", 1));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
}

TEST_F(OpenClTrialsTest, ARequiredFeatureThatADriverLeavesNoRoomForIsSaid) {
  Find();
  if (IsSkipped()) return;
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
  EXPECT_THAT(std::string(runner.status().message()), HasSubstr("lab-opencl0"));
  EXPECT_THAT(std::string(runner.status().message()), HasSubstr("tight"));
}

TEST(OpenClClassTest, NamesAreStableAndReadable) {
  v1::BoardDevice device;
  device.set_platform("Portable Computing Language");
  device.set_name("pthread-AMD EPYC 9654 96-Core Processor");
  device.set_compute_units(2);
  device.set_on_host_cores(true);
  EXPECT_EQ(OpenClDeviceClass(device, "znver4-2c"), "opencl-pocl-znver4-2c");
  device.set_platform("Intel(R) OpenCL");
  EXPECT_EQ(OpenClDeviceClass(device, "znver4-2c"),
            "opencl-intel-r-opencl-znver4-2c");
  device.set_on_host_cores(false);
  device.set_platform("ARM Platform");
  device.set_name("Mali-G610 r0p0 ");
  device.set_compute_units(4);
  EXPECT_EQ(OpenClDeviceClass(device, "x"), "opencl-mali-g610-r0p0-4cu");
}

}  // namespace
}  // namespace regatta
