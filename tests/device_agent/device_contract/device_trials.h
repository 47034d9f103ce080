// Trials on a device of one kind the whole way: found by a run worker, built
// (by hand, planted_device.h), verified against the host's reference and timed
// in the sandbox.
#ifndef REGATTA_TESTS_DEVICE_AGENT_DEVICE_CONTRACT_DEVICE_TRIALS_H_
#define REGATTA_TESTS_DEVICE_AGENT_DEVICE_CONTRACT_DEVICE_TRIALS_H_

#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/device_agent/device_contract/device_kind.h"
#include "tests/device_agent/driver_workers.h"
#include "tests/device_agent/runner_fixture.h"

namespace regatta::testing {

class DeviceTrialsTest : public RunnerTest {
 protected:
  explicit DeviceTrialsTest(const DeviceKind& kind) : kind_(kind) {}

  // Skips where there is no device.
  void SetUp() override { Find(); }

  // The first device, as an agent finds it. `without`: sandbox features not to
  // use.
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
    board_.cuda_driver = kind_.cuda_driver;
    const auto found = kind_.provider().Find(board_);
    ASSERT_TRUE(found.ok()) << found.status();
    if (found->empty()) {
      const auto first = kind_.first_device();
      ASSERT_TRUE(absl::IsUnavailable(first.status())) << first.status();
      GTEST_SKIP() << first.status().message();
    }
    device_ = found->front();
    // A kernel that hangs is waited for as long.
    device_.needs.start_ms = 3'000;
  }
  void StartDevice(const std::vector<std::string>& without = {}) {
    RunnerOptions options;
    options.build_worker = "regatta-build-worker-planted";
    options.run_limit_ms = 2'000;
    ServedDevice& served = options.devices.emplace_back(device_);
    served.info.set_device_id("here");
    served.info.set_device_class("test");
    StartRunner(options, without);
  }
  v1::TrialSpec Planted(const std::string& name, int64_t ordinal) {
    v1::TrialSpec spec = Trial("B[i] = A[i] * 2 where i=1000", ordinal);
    // Measured again on purpose, or the second would be a duplicate.
    spec.set_kind(v1::TRIAL_KIND_RACE);
    spec.set_target(device_.info.target());
    spec.mutable_schedule()->set_space(kind_.name);
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

  const DeviceKind& kind_;
  Board board_;
  PlantedBuildInfo build_;
  std::unique_ptr<SpawnedRunWorker> worker_;
  ServedDevice device_;
  int64_t ordinal_ = 0;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_DEVICE_AGENT_DEVICE_CONTRACT_DEVICE_TRIALS_H_
