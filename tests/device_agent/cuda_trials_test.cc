// Trials on a simulated CUDA device the whole way: found by a run worker, built
// (by hand), verified against the host's reference and timed in the sandbox, in
// run workers that are kept from one trial to the next.
#include <fstream>
#include <set>

#include "device_agent/devices/cuda_provider.h"
#include "device_agent/measure/trial_timer.h"
#include "gmock/gmock.h"
#include "tests/device_agent/driver_workers.h"
#include "tests/device_agent/runner_fixture.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kWorkload[] = "B[i] = A[i] * 2 where i=1000";

class CudaTrialsTest : public RunnerTest {
 protected:
  void Find() {
    auto spawner = SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner");
    ASSERT_TRUE(spawner.ok()) << spawner.status();
    worker_ = std::make_unique<SpawnedRunWorker>(*spawner);
    board_.agent_id = "lab";
    board_.cpus = AllowedCpus();
    board_.host.set_device_class("host-2c");
    board_.credit = 2;
    board_.build_worker = &build_;
    board_.run_worker = worker_.get();
    board_.cuda_driver = REGATTA_LIB_DIR "/libregatta-cuda-sim.so";
    const auto found = CudaProvider().Find(board_);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->size(), 1u);
    device_ = found->front();
  }
  void StartCuda() {
    Find();
    if (HasFatalFailure()) return;
    RunnerOptions options;
    options.build_worker = "regatta-build-worker-planted";
    options.run_limit_ms = 2'000;
    ServedDevice& served = options.devices.emplace_back(device_);
    served.info.set_device_id("here");
    served.info.set_device_class("test");
    StartRunner(options);
  }
  v1::TrialSpec Planted(const std::string& name, int64_t ordinal) {
    v1::TrialSpec spec = Trial(kWorkload, ordinal);
    // Measured again on purpose, or the second would be a duplicate.
    spec.set_kind(v1::TRIAL_KIND_RACE);
    spec.set_target(device_.info.target());
    spec.mutable_schedule()->set_space("cuda");
    spec.mutable_schedule()->set_text("planted{fault=" + name + "}");
    return spec;
  }
  v1::TrialResult RunPlanted(const std::string& name) {
    return RunOne(Planted(name, ++ordinal_));
  }
  // Run workers that live between trials.
  std::set<pid_t> KeptWorkers() {
    std::set<pid_t> pids;
    for (const ProcessInfo& process :
         ProcessTree::Read().Descendants(spawner_->pid())) {
      std::ifstream file("/proc/" + std::to_string(process.pid) + "/comm");
      std::string name;
      if (file >> name && name == "regatta-run-wor") pids.insert(process.pid);
    }
    return pids;
  }

  Board board_;
  PlantedBuildInfo build_;
  std::unique_ptr<SpawnedRunWorker> worker_;
  ServedDevice device_;
  int64_t ordinal_ = 0;
};

TEST_F(CudaTrialsTest, ASimulatedDeviceSaysThatItIsOneEverywhere) {
  Find();
  EXPECT_EQ(device_.info.device_id(), "simulated-lab-cuda0");
  EXPECT_EQ(device_.info.device_class(), "simulated-cuda-sm_80");
  EXPECT_TRUE(device_.info.simulated());
  EXPECT_THAT(device_.info.target(), StartsWith("cuda,mcpu=sm_80,"));
  EXPECT_EQ(device_.info.driver_version(), "CUDA, driver of CUDA 13.0");
  EXPECT_EQ(device_.info.marketing_name(), "Simulated sm_80");
  const auto again = CudaProvider().Find(board_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->front().info.SerializeAsString(),
            device_.info.SerializeAsString());
}

TEST_F(CudaTrialsTest, EveryFaultCostsItsOwnTrialOnly) {
  StartCuda();
  const struct {
    const char* name;
    v1::Outcome outcome;
    const char* detail;
  } rows[] = {
      {"illegal_address", v1::OUTCOME_CRASHED, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {"trap", v1::OUTCOME_CRASHED, "CUDA_ERROR_LAUNCH_FAILED"},
      {"endless", v1::OUTCOME_TIMED_OUT, "killed after 2.0 s"},
      {"much_shared", v1::OUTCOME_REFUSED, "bytes of shared memory"},
      {"much_memory", v1::OUTCOME_OUT_OF_MEMORY, "workspace w"},
      {"huge_block", v1::OUTCOME_REFUSED, "4096 threads"},
      {"no_compile", v1::OUTCOME_COMPILE_ERROR, "abacus"},
      {"no_kernel", v1::OUTCOME_COMPILE_ERROR, "elsewhere"},
      {"wrong", v1::OUTCOME_WRONG_RESULT, "output B"},
      {"oob_near", v1::OUTCOME_WRONG_RESULT, "after output B"},
      {"write_input", v1::OUTCOME_WRONG_RESULT, "input A was overwritten"},
  };
  for (const auto& row : rows) {
    const v1::TrialResult bad = RunPlanted(row.name);
    EXPECT_EQ(bad.outcome(), row.outcome) << row.name << ": " << bad.detail();
    EXPECT_THAT(bad.detail(), HasSubstr(row.detail)) << row.name;
    EXPECT_EQ(bad.blocks_size(), 0) << row.name;
    EXPECT_THAT(KeptWorkers(), ::testing::IsEmpty()) << row.name;
    const v1::TrialResult honest = RunPlanted("honest");
    EXPECT_EQ(honest.outcome(), v1::OUTCOME_OK)
        << "after " << row.name << ": " << honest.detail();
    EXPECT_GT(honest.blocks_size(), 0);
  }
}

TEST_F(CudaTrialsTest, WorkersAreKeptWhileAllGoesWellAndReplacedAfterAFault) {
  StartCuda();
  ASSERT_EQ(RunPlanted("honest").outcome(), v1::OUTCOME_OK);
  const std::set<pid_t> first = KeptWorkers();
  ASSERT_EQ(first.size(), 1u);
  for (int i = 0; i < 5; ++i) {
    const v1::TrialResult result = RunPlanted(i % 2 == 0 ? "slow" : "honest");
    ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
    EXPECT_EQ(KeptWorkers(), first) << i;
  }
  EXPECT_EQ(RunPlanted("trap").outcome(), v1::OUTCOME_CRASHED);
  ASSERT_EQ(RunPlanted("honest").outcome(), v1::OUTCOME_OK);
  ASSERT_EQ(KeptWorkers().size(), 1u);
  EXPECT_NE(KeptWorkers(), first);
}

TEST_F(CudaTrialsTest, TimesAreTheModelsAndTheSameEveryTime) {
  StartCuda();
  const v1::TrialResult one = RunPlanted("honest");
  const v1::TrialResult two = RunPlanted("honest");
  const v1::TrialResult slow = RunPlanted("slow");
  ASSERT_EQ(one.outcome(), v1::OUTCOME_OK) << one.detail();
  ASSERT_EQ(slow.outcome(), v1::OUTCOME_OK) << slow.detail();
  EXPECT_EQ(one.time_ns(), two.time_ns());
  ASSERT_EQ(one.blocks_size(), two.blocks_size());
  for (int i = 0; i < one.blocks_size(); ++i) {
    EXPECT_EQ(one.blocks(i).SerializeAsString(),
              two.blocks(i).SerializeAsString());
  }
  // 2000 dependent multiply-adds at 1.41 GHz take at least 4 cycles each.
  EXPECT_GT(slow.time_ns(), one.time_ns() + 2'000);
  EXPECT_EQ(one.environment().driver_version(), device_.info.driver_version());
  EXPECT_THAT(one.environment().sandbox(), ::testing::Not(HasSubstr("tight")));
}

TEST_F(CudaTrialsTest, TrialsAreTimedAlternatelyInWorkersOfTheirOwn) {
  StartCuda();
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
  EXPECT_EQ(KeptWorkers().size(), 3u);
}

TEST_F(CudaTrialsTest, ColdTrialsAreTimedAsWell) {
  StartCuda();
  v1::TrialSpec spec = Planted("honest", 1);
  spec.mutable_policy()->set_cache(v1::CACHE_STATE_COLD);
  const v1::TrialResult result = RunOne(spec);
  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
}

TEST_F(CudaTrialsTest, StoppingKillsWhatRuns) {
  StartCuda();
  ASSERT_EQ(RunPlanted("honest").outcome(), v1::OUTCOME_OK);
  v1::Assignment assignment = Assign({Planted("endless", 90)});
  runner_->Start(assignment);
  runner_->Stop(assignment.assignment_id());
  EXPECT_EQ(RunPlanted("honest").outcome(), v1::OUTCOME_OK);
}

TEST(CudaClassTest, NamesAreStableAndReadable) {
  v1::BoardDevice device;
  device.set_name("NVIDIA H200");
  device.set_compute_units(132);
  device.set_architecture("sm_90");
  EXPECT_EQ(CudaDeviceClass(device), "cuda-nvidia-h200-132sm");
  device.set_name("NVIDIA GeForce RTX 4090 (Laptop)");
  device.set_compute_units(76);
  EXPECT_EQ(CudaDeviceClass(device),
            "cuda-nvidia-geforce-rtx-4090-laptop-76sm");
  device.set_simulated(true);
  EXPECT_EQ(CudaDeviceClass(device), "simulated-cuda-sm_90");
}

}  // namespace
}  // namespace regatta
