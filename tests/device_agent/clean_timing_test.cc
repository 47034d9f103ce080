// Drift, throttling and silence around real runs.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "device_agent/probe/machine.h"
#include "gmock/gmock.h"
#include "tests/device_agent/runner_fixture.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

constexpr char kMatmul[] = "matmul(m=48,n=48,k=48)";

class CleanTimingTest : public RunnerTest {
 protected:
  // A board whose reference takes what the test says, with clocks and throttle
  // counters in files.
  RunnerOptions Options() {
    RunnerOptions options;
    options.root = StateDir() + "/root";
    options.time_reference = [this] {
      return std::optional<double>(reference_ns_);
    };
    options.on_measuring = [this](const std::string& device_id,
                                  const MeasuringState& state) {
      EXPECT_EQ(device_id, "here");
      std::lock_guard lock(mutex_);
      state_ = state;
    };
    options.on_window = [this](const std::string& device_id,
                               absl::Duration longest) {
      EXPECT_EQ(device_id, "here");
      std::lock_guard lock(mutex_);
      windows_.push_back(longest);
    };
    for (const int cpu : AllowedCpus()) {
      Put(cpu, "cpufreq/scaling_governor", "performance");
      Put(cpu, "thermal_throttle/core_throttle_count", "3");
    }
    return options;
  }
  std::string File(int cpu, const std::string& name) {
    return StateDir() + "/root/sys/devices/system/cpu/cpu" +
           std::to_string(cpu) + "/" + name;
  }
  void Put(int cpu, const std::string& name, const std::string& text) {
    const std::filesystem::path path(File(cpu, name));
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  // The counter of throttling grows from now on, all the time: it is the
  // machine's uptime.
  void Overheat() {
    for (const int cpu : AllowedCpus()) {
      const std::string file =
          File(cpu, "thermal_throttle/core_throttle_count");
      std::filesystem::remove(file);
      std::filesystem::create_symlink("/proc/uptime", file);
    }
  }
  // It stands still from now on.
  void CoolDown() {
    for (const int cpu : AllowedCpus()) {
      const std::string file =
          File(cpu, "thermal_throttle/core_throttle_count");
      std::ofstream(file + ".new") << "999999999\n";
      std::filesystem::rename(file + ".new", file);
    }
  }
  // Waits until a candidate's run has begun.
  void AwaitWindow(size_t number) {
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
      std::lock_guard lock(mutex_);
      if (windows_.size() >= number) return;
    }
  }
  MeasuringState State() {
    std::lock_guard lock(mutex_);
    return state_;
  }

  std::atomic<double> reference_ns_ = 1e6;
  std::mutex mutex_;
  MeasuringState state_;
  std::vector<absl::Duration> windows_;
};

TEST_F(CleanTimingTest, ARecordNamesItsSessionAndWhatItsReferenceTook) {
  StartRunner(Options());
  const v1::TrialResult first = RunOnce(Trial(kMatmul, 1));
  ASSERT_EQ(first.outcome(), v1::OUTCOME_OK) << first.detail();
  EXPECT_EQ(first.environment().session_reference_ns(), 1e6);
  EXPECT_THAT(first.environment().session(), ::testing::EndsWith("/1"));
  EXPECT_EQ(first.environment().governor(), "performance");
  EXPECT_EQ(first.environment().uncontrolled(), "");
  const v1::TrialResult second = RunOnce(Trial("softmax(rows=7,cols=100)", 2));
  EXPECT_EQ(second.environment().session(), first.environment().session());
  EXPECT_EQ(State().sessions_closed, 0);
}

TEST_F(CleanTimingTest, TimesTakenWhileTheBoardDriftedAreThrottled) {
  StartRunner(Options());
  const v1::TrialResult before = RunOnce(Trial(kMatmul, 1));
  ASSERT_EQ(before.outcome(), v1::OUTCOME_OK) << before.detail();

  reference_ns_ = 1.5e6;
  const v1::TrialResult during = RunOnce(Trial("softmax(rows=7,cols=100)", 2));
  EXPECT_EQ(during.outcome(), v1::OUTCOME_THROTTLED);
  EXPECT_THAT(during.detail(), HasSubstr("+50.0 %"));
  EXPECT_EQ(during.time_ns(), 0);
  ASSERT_GT(during.blocks_size(), 0);
  for (const v1::Block& block : during.blocks()) {
    EXPECT_TRUE(block.throttled());
  }
  EXPECT_EQ(during.environment().session(), before.environment().session());
  EXPECT_EQ(State().sessions_closed, 1);
  EXPECT_EQ(State().throttled_blocks, during.blocks_size());
  EXPECT_DOUBLE_EQ(State().last_drift, 0.5);

  // The same code again is no duplicate of what said nothing.
  const v1::TrialResult after = RunOnce(Trial("softmax(rows=7,cols=100)", 3));
  EXPECT_EQ(after.outcome(), v1::OUTCOME_OK) << after.detail();
  EXPECT_NE(after.environment().session(), before.environment().session());
  EXPECT_EQ(after.environment().session_reference_ns(), 1.5e6);
}

TEST_F(CleanTimingTest, ADuplicateOfATimeThatDoesNotHoldIsNoneEither) {
  StartRunner(Options());
  ASSERT_EQ(RunOnce(Trial("softmax(rows=7,cols=100)", 1)).outcome(),
            v1::OUTCOME_OK);
  reference_ns_ = 1.5e6;
  v1::Assignment both = Assign({Trial(kMatmul, 2), Trial(kMatmul, 3)});
  runner_->Start(both);
  const std::vector<ResultLog::Entry> entries = log_.Wait(3);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[1].result.outcome(), v1::OUTCOME_THROTTLED);
  // Or timed by itself, in the next session, where it was built that late.
  const v1::TrialResult& second = entries[2].result;
  if (second.outcome() == v1::OUTCOME_OK) {
    EXPECT_NE(second.environment().session(),
              entries[1].result.environment().session());
  } else {
    EXPECT_EQ(second.outcome(), v1::OUTCOME_THROTTLED);
  }
  EXPECT_TRUE(entries[2].last);
}

TEST_F(CleanTimingTest, FailuresDoNotWaitForTheReference) {
  StartRunner(Options());
  v1::TrialSpec bad = Trial(kMatmul, 1);
  bad.mutable_schedule()->set_text("nonsense");
  reference_ns_ = 1e6;
  ASSERT_EQ(RunOnce(Trial("softmax(rows=7,cols=100)", 2)).outcome(),
            v1::OUTCOME_OK);
  reference_ns_ = 9e6;
  EXPECT_EQ(RunOnce(bad).outcome(), v1::OUTCOME_COMPILE_ERROR);
}

TEST_F(CleanTimingTest, AThrottledRunIsDoneAgainAndItsBlocksAreDiscarded) {
  StartRunner(Options());
  // Makes the reference outputs and the module, so that the next run is the
  // candidate's.
  v1::TrialSpec spec = Trial(kMatmul, 1);
  spec.set_kind(v1::TRIAL_KIND_RACE);
  ASSERT_EQ(RunOnce(spec).outcome(), v1::OUTCOME_OK);
  Overheat();
  spec.set_trial_id("1/0/2");
  runner_->Start(Assign({spec}));
  AwaitWindow(5);  // the first, begun and over; the second; its repetition
  CoolDown();
  const std::vector<ResultLog::Entry> entries = log_.Wait(2);
  ASSERT_EQ(entries.size(), 2u);
  const v1::TrialResult& result = entries[1].result;
  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
  int64_t throttled = 0;
  for (const v1::Block& block : result.blocks()) {
    throttled += block.throttled() ? 1 : 0;
  }
  EXPECT_GE(throttled, 3);
  EXPECT_LE(throttled, result.blocks_size() - 3);
  EXPECT_FALSE(result.blocks(result.blocks_size() - 1).throttled());
  EXPECT_GT(result.time_ns(), 0);
  EXPECT_EQ(State().throttled_blocks, throttled);
}

TEST_F(CleanTimingTest, ABoardThatStaysHotEndsTheTrialAsThrottled) {
  RunnerOptions options = Options();
  Overheat();
  StartRunner(options);
  const v1::TrialResult result = RunOnce(Trial(kMatmul));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_THROTTLED);
  EXPECT_EQ(result.detail(),
            "the processors were throttled during each of 4 runs");
  EXPECT_EQ(result.time_ns(), 0);
  EXPECT_GE(result.blocks_size(), 4 * 3);
  EXPECT_EQ(State().throttled_blocks, result.blocks_size());
  EXPECT_EQ(windows_.size(), 8u);
}

TEST_F(CleanTimingTest, InterleavedBlocksAreDiscardedOneByOne) {
  RunnerOptions options = Options();
  Overheat();
  StartRunner(options);
  v1::TrialSpec a = Trial(kMatmul, 1), b = Trial(kMatmul, 2);
  a.set_kind(v1::TRIAL_KIND_CONFIRM);
  b.set_kind(v1::TRIAL_KIND_CONFIRM);
  runner_->Start(Assign({a, b}, v1::ASSIGNMENT_MODE_INTERLEAVE));
  const std::vector<ResultLog::Entry> entries = log_.Wait(2);
  ASSERT_EQ(entries.size(), 2u);
  for (const ResultLog::Entry& entry : entries) {
    // The uptime counts in hundredths of a second, a block takes 2 ms: some
    // were throttled, some were not, and each says which it was.
    ASSERT_EQ(entry.result.outcome(), v1::OUTCOME_OK) << entry.result.detail();
    std::vector<double> kept;
    for (const v1::Block& block : entry.result.blocks()) {
      if (block.throttled()) continue;
      kept.push_back(static_cast<double>(block.elapsed_ns()) /
                     static_cast<double>(block.calls()));
    }
    ASSERT_FALSE(kept.empty());
    std::sort(kept.begin(), kept.end());
    EXPECT_GE(entry.result.time_ns() + 1, kept.front());
    EXPECT_LE(entry.result.time_ns() - 1, kept.back());
  }
}

TEST_F(CleanTimingTest, EveryRunIsAnnouncedAndItsEndToo) {
  StartRunner(Options());
  ASSERT_EQ(RunOnce(Trial(kMatmul)).outcome(), v1::OUTCOME_OK);
  ASSERT_EQ(windows_.size(), 2u);
  EXPECT_GE(windows_[0], absl::Seconds(2));
  EXPECT_EQ(windows_[1], absl::ZeroDuration());
}

TEST_F(CleanTimingTest, TimesUnderAnotherGovernorAreMarked) {
  RunnerOptions options = Options();
  for (const int cpu : AllowedCpus()) {
    Put(cpu, "cpufreq/scaling_governor", "powersave");
  }
  StartRunner(options);
  const v1::TrialResult result = RunOnce(Trial(kMatmul));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK);
  EXPECT_EQ(result.environment().governor(), "powersave");
  EXPECT_THAT(result.environment().uncontrolled(),
              HasSubstr("; run: cpupower frequency-set -g performance"));
}

}  // namespace
}  // namespace regatta
