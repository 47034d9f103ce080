// A trial runner with real workers, for tests.
#ifndef REGATTA_TESTS_DEVICE_AGENT_RUNNER_FIXTURE_H_
#define REGATTA_TESTS_DEVICE_AGENT_RUNNER_FIXTURE_H_

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/ops/op.h"
#include "device_agent/measure/trial_runner.h"
#include "device_agent/spawner/process_tree.h"
#include "device_agent/spawner/spawner_client.h"
#include "gtest/gtest.h"
#include "tests/device_agent/drifted.h"

namespace regatta {

// Results in the order in which they came.
class ResultLog {
 public:
  struct Entry {
    std::string assignment;
    v1::TrialResult result;
    bool last;
  };
  void Add(const std::string& assignment, v1::TrialResult result, bool last) {
    std::lock_guard<std::mutex> lock(mutex_);
    entries_.push_back({assignment, std::move(result), last});
    changed_.notify_all();
  }
  // Waits until `count` results are there; fewer after a minute.
  std::vector<Entry> Wait(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(1),
                      [&] { return entries_.size() >= count; });
    return entries_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;
};

class RunnerTest : public ::testing::Test {
 protected:
  void StartRunner(RunnerOptions options = {},
                   const std::vector<std::string>& without = {}) {
    auto spawner =
        SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner", without);
    ASSERT_TRUE(spawner.ok()) << spawner.status();
    spawner_ = *std::move(spawner);
    auto target = HostTarget();
    ASSERT_TRUE(target.ok()) << target.status();
    target_ = *target;
    options.worker_dir = REGATTA_BIN_DIR;
    if (options.state_dir.empty()) options.state_dir = StateDir();
    options.lock_folder = StateDir();
    if (options.devices.empty()) {
      v1::DeviceInfo& device = options.devices.emplace_back().info;
      device.set_device_id("here");
      device.set_device_class("test");
      device.set_target(target_.ToString());
    }
    auto runner =
        CreateTrialRunner(options, spawner_,
                          [this](const std::string& assignment,
                                 v1::TrialResult result, bool last) {
                            if (before_result_ != nullptr)
                              before_result_(result);
                            log_.Add(assignment, std::move(result), last);
                          });
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
  }
  void TearDown() override {
    runner_.reset();
    if (spawner_ != nullptr) {
      EXPECT_TRUE(ProcessTree::Read().Descendants(spawner_->pid()).size() <= 1)
          << "more than a build worker is left below the spawner";
    }
    spawner_.reset();
    std::filesystem::remove_all(StateDir());
  }

  std::string StateDir() {
    if (state_dir_.empty()) {
      state_dir_ = ::testing::TempDir() + "/regatta-runner-XXXXXX";
      EXPECT_NE(mkdtemp(state_dir_.data()), nullptr);
    }
    return state_dir_;
  }

  // A trial of the default schedule.
  v1::TrialSpec Trial(const std::string& workload, int64_t ordinal = 1) {
    v1::TrialSpec spec;
    spec.set_trial_id("1/0/" + std::to_string(ordinal));
    spec.set_job_id(1);
    spec.set_ordinal(ordinal);
    spec.set_kind(v1::TRIAL_KIND_CANDIDATE);
    spec.set_workload(workload);
    spec.set_device_class("test");
    spec.set_target(target_.ToString());
    spec.mutable_policy()->set_threads(1);
    spec.mutable_policy()->set_cache(v1::CACHE_STATE_WARM);
    spec.set_input_seed(17);
    const Space space = SpaceOf(workload);
    spec.mutable_schedule()->set_space(std::string(space.name()));
    spec.mutable_schedule()->set_space_version(kSpaceVersion);
    spec.mutable_schedule()->set_text(space.Print(space.Default()));
    return spec;
  }
  Space SpaceOf(const std::string& workload) {
    auto parsed = ParseWorkload(workload);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    auto space = CreateSpace(*parsed, target_, 1);
    EXPECT_TRUE(space.ok()) << space.status();
    return *std::move(space);
  }
  v1::Assignment Assign(const std::vector<v1::TrialSpec>& trials,
                        v1::AssignmentMode mode = v1::ASSIGNMENT_MODE_SCREEN) {
    v1::Assignment assignment;
    assignment.set_assignment_id("a" + std::to_string(++assignments_));
    assignment.set_device_id("here");
    assignment.set_mode(mode);
    assignment.set_attempt(1);
    for (const v1::TrialSpec& trial : trials) {
      *assignment.add_trials() = trial;
    }
    return assignment;
  }
  // The result of one trial.
  v1::TrialResult RunOnce(const v1::TrialSpec& spec) {
    runner_->Start(Assign({spec}));
    const std::vector<ResultLog::Entry> entries = log_.Wait(++expected_);
    EXPECT_EQ(entries.size(), expected_) << "no result";
    if (entries.size() != expected_) return {};
    EXPECT_TRUE(entries.back().last);
    return entries.back().result;
  }
  // One that the machine drifted beneath is tried again, as a tracker does.
  v1::TrialResult RunOne(const v1::TrialSpec& spec) {
    v1::TrialResult result = RunOnce(spec);
    for (int i = 1; i < 5 && Drifted(result); ++i) result = RunOnce(spec);
    return result;
  }

  Target target_;
  ResultLog log_;
  // Called with every result before it is noted.
  std::function<void(const v1::TrialResult&)> before_result_;
  size_t expected_ = 0;
  int assignments_ = 0;
  std::string state_dir_;
  std::shared_ptr<SpawnerClient> spawner_;
  std::unique_ptr<TrialRunner> runner_;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_DEVICE_AGENT_RUNNER_FIXTURE_H_
