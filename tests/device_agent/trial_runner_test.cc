// Honest trials through real workers.
#include <signal.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "base/random.h"
#include "device_agent/measure/core_locks.h"
#include "device_agent/probe/machine.h"
#include "tests/device_agent/runner_fixture.h"

namespace regatta {
namespace {

constexpr char kMatmul[] = "matmul(m=64,n=48,k=80)";

TEST_F(RunnerTest, AnHonestMatmulIsVerifiedAndTimed) {
  StartRunner();
  const v1::TrialResult result = RunOne(Trial(kMatmul));
  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
  EXPECT_EQ(result.detail(), "");
  EXPECT_EQ(result.spec().trial_id(), "1/0/1");
  // Five, unless a busy machine makes them long.
  EXPECT_GE(result.blocks_size(), 3);
  EXPECT_LE(result.blocks_size(), 5);
  for (const v1::Block& block : result.blocks()) {
    EXPECT_GE(block.elapsed_ns(), 1'000'000);
    EXPECT_GE(block.calls(), 1);
  }
  EXPECT_GT(result.time_ns(), 0);
  EXPECT_GT(result.max_error(), 0);
  EXPECT_LE(result.max_error(), 1);
  EXPECT_EQ(result.binary_hash().size(), 64u);
  EXPECT_GT(result.phases().build_ns(), 0);
  EXPECT_GT(result.phases().verify_ns(), 0);
  EXPECT_GT(result.phases().time_ns(), 0);
  EXPECT_GT(result.timed_end_boot_ns(), result.timed_start_boot_ns());
  EXPECT_FALSE(result.environment().compiler_version().empty());
  EXPECT_FALSE(result.environment().kernel_release().empty());
  EXPECT_EQ(result.environment().sandbox(), spawner_->SandboxText());
  EXPECT_EQ(result.device_id(), "here");
  EXPECT_FALSE(result.boot_id().empty());
}

TEST_F(RunnerTest, AWorkloadTooBigForTheBoardSaysWhatItNeeds) {
  RunnerOptions options;
  options.run_memory_bytes = int64_t{256} << 20;
  StartRunner(options);
  // 256 MiB of output, twice.
  const v1::TrialResult result = RunOne(Trial("matmul(m=8192,n=8192,k=8)"));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_OUT_OF_MEMORY);
  EXPECT_NE(result.detail().find("needs 0.50 GiB"), std::string::npos)
      << result.detail();
  EXPECT_NE(result.detail().find("at most 0.25 GiB of this board's"),
            std::string::npos)
      << result.detail();
  EXPECT_EQ(result.device_id(), "here");
}

// In a container with a limit the machine's memory is not the board's.
TEST_F(RunnerTest, WorkersGetHalfOfWhatTheBoardMayUse) {
  const std::string root = StateDir() + "/root";
  const auto put = [&](const std::string& path, const std::string& text) {
    const std::filesystem::path full = root + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  };
  RunnerOptions options;
  options.worker_dir = REGATTA_BIN_DIR;
  options.root = root;
  const auto limit = [&] { return BuildWorkerOf(options)->memory_bytes; };
  put("/proc/meminfo", "MemTotal: 67108864 kB\n");
  EXPECT_EQ(limit(), int64_t{4} << 30);
  put("/proc/self/cgroup", "0::/\n");
  put("/proc/self/mountinfo",
      "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put("/sys/fs/cgroup/cgroup.procs", "");
  put("/sys/fs/cgroup/memory.max", "2147483648\n");
  EXPECT_EQ(limit(), int64_t{1} << 30);
}

TEST_F(RunnerTest, SoftmaxConvolutionAndNarrowTypesAreRight) {
  StartRunner();
  int64_t ordinal = 0;
  for (const char* workload :
       {"softmax(rows=7,cols=100)",
        "conv2d(n=1,h=9,w=9,ci=5,co=7,kh=3,kw=3,stride=1,pad=1)",
        "matmul(m=33,n=17,k=40,dtype=i8)", "matmul(m=33,n=17,k=40,dtype=f16)",
        "C[i] = sum(k) A[i,k] * A[i,k]; D[i] = sqrt(C[i]) + b[i]"
        " where i=37, k=50"}) {
    const v1::TrialResult result = RunOne(Trial(workload, ++ordinal));
    EXPECT_EQ(result.outcome(), v1::OUTCOME_OK)
        << workload << ": " << result.detail();
  }
}

TEST_F(RunnerTest, ASecondScheduleWithTheSameCodeIsADuplicate) {
  StartRunner();
  EXPECT_EQ(RunOne(Trial(kMatmul, 1)).outcome(), v1::OUTCOME_OK);
  const v1::TrialResult second = RunOne(Trial(kMatmul, 2));
  EXPECT_EQ(second.outcome(), v1::OUTCOME_DUPLICATE_BINARY);
  EXPECT_EQ(second.detail(), "same code as trial 1/0/1");
  // The same trial again, because its lease came back, is measured again.
  EXPECT_EQ(RunOne(Trial(kMatmul, 1)).outcome(), v1::OUTCOME_OK);
  // So is a finalist.
  v1::TrialSpec race = Trial(kMatmul, 3);
  race.set_kind(v1::TRIAL_KIND_RACE);
  EXPECT_EQ(RunOne(race).outcome(), v1::OUTCOME_OK);
  // Another job knows nothing of it.
  v1::TrialSpec other = Trial(kMatmul, 4);
  other.set_job_id(2);
  EXPECT_EQ(RunOne(other).outcome(), v1::OUTCOME_OK);
}

TEST_F(RunnerTest, TextThatIsNoScheduleIsACompileErrorThatSaysSo) {
  StartRunner();
  v1::TrialSpec spec = Trial(kMatmul);
  spec.mutable_schedule()->set_text("no{such=schedule}");
  v1::TrialResult result = RunOne(spec);
  EXPECT_EQ(result.outcome(), v1::OUTCOME_COMPILE_ERROR);
  EXPECT_NE(result.detail(), "");
  spec = Trial(kMatmul);
  spec.mutable_schedule()->set_space_version(999);
  result = RunOne(spec);
  EXPECT_EQ(result.outcome(), v1::OUTCOME_COMPILE_ERROR);
  EXPECT_NE(result.detail().find("version 999"), std::string::npos);
}

TEST_F(RunnerTest, RootWithoutAnotherUserIsRefusedAtTheStart) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  auto spawner =
      SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner", {"uid"});
  ASSERT_TRUE(spawner.ok()) << spawner.status();
  RunnerOptions options;
  options.worker_dir = REGATTA_BIN_DIR;
  const absl::Status refused =
      CreateTrialRunner(options, *spawner,
                        [](const std::string&, v1::TrialResult, bool) {})
          .status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("start as another user"),
            absl::string_view::npos);
}

TEST_F(RunnerTest, MoreThreadsThanCoresAreRefused) {
  StartRunner();
  v1::TrialSpec spec = Trial(kMatmul);
  spec.mutable_policy()->set_threads(4096);
  const v1::TrialResult result = RunOne(spec);
  EXPECT_EQ(result.outcome(), v1::OUTCOME_REFUSED) << result.detail();
}

TEST_F(RunnerTest, FarSlowerThanTheIncumbentIsAbandonedAsOk) {
  StartRunner();
  v1::TrialSpec spec = Trial(kMatmul);
  spec.set_incumbent_ns(1);
  const v1::TrialResult result = RunOne(spec);
  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
  EXPECT_TRUE(result.abandoned());
  EXPECT_EQ(result.blocks_size(), 2);
}

TEST_F(RunnerTest, ColdTimesAreTakenCallByCall) {
  StartRunner();
  v1::TrialSpec spec = Trial(kMatmul);
  spec.mutable_policy()->set_cache(v1::CACHE_STATE_COLD);
  const v1::TrialResult result = RunOne(spec);
  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
  for (const v1::Block& block : result.blocks()) EXPECT_LE(block.calls(), 4);
}

TEST_F(RunnerTest, FasterThanTheMachineCanBeIsImplausible) {
  RunnerOptions options;
  v1::DeviceInfo& device = options.devices.emplace_back().info;
  device.set_device_id("here");
  device.set_peak_flops_per_s(1e3);
  device.set_has_noise_floor(true);
  StartRunner(options);
  const v1::TrialResult result = RunOne(Trial(kMatmul));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_IMPLAUSIBLE);
  EXPECT_NE(result.detail().find("peak"), std::string::npos);
}

TEST_F(RunnerTest, APeakThatABusyMachineShowedCallsNothingImplausible) {
  RunnerOptions options;
  v1::DeviceInfo& device = options.devices.emplace_back().info;
  device.set_device_id("here");
  device.set_peak_flops_per_s(1e3);
  StartRunner(options);
  const v1::TrialResult result = RunOne(Trial(kMatmul));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
}

TEST_F(RunnerTest, WhatProbingFoundOutCountsFromThenOn) {
  StartRunner();
  v1::DeviceInfo device;
  device.set_device_id("here");
  device.set_peak_flops_per_s(1e3);
  device.set_has_noise_floor(true);
  EXPECT_EQ(RunOne(Trial(kMatmul, 1)).outcome(), v1::OUTCOME_OK);
  runner_->UpdateDevice(device);
  v1::TrialSpec again = Trial(kMatmul, 2);
  again.set_kind(v1::TRIAL_KIND_RACE);
  EXPECT_EQ(RunOne(again).outcome(), v1::OUTCOME_IMPLAUSIBLE);
}

TEST_F(RunnerTest, InterleavedTrialsHaveBlocksOfTheSameRounds) {
  StartRunner();
  std::vector<v1::TrialSpec> trials;
  for (int i = 1; i <= 3; ++i) {
    v1::TrialSpec spec = Trial(kMatmul, i);
    spec.set_kind(v1::TRIAL_KIND_CONFIRM);
    spec.set_input_seed(99);
    trials.push_back(spec);
  }
  trials[2].mutable_schedule()->set_text("no{such=schedule}");
  runner_->Start(Assign(trials, v1::ASSIGNMENT_MODE_INTERLEAVE));
  const std::vector<ResultLog::Entry> entries = log_.Wait(3);
  ASSERT_EQ(entries.size(), 3u);
  int last = 0;
  std::map<std::string, v1::TrialResult> results;
  for (const ResultLog::Entry& entry : entries) {
    last += entry.last;
    results[entry.result.spec().trial_id()] = entry.result;
  }
  EXPECT_EQ(last, 1);
  EXPECT_EQ(results["1/0/3"].outcome(), v1::OUTCOME_COMPILE_ERROR);
  for (const char* id : {"1/0/1", "1/0/2"}) {
    EXPECT_EQ(results[id].outcome(), v1::OUTCOME_OK) << results[id].detail();
    EXPECT_GE(results[id].blocks_size(), 10);
    EXPECT_EQ(results[id].blocks_size(), results["1/0/1"].blocks_size());
    for (const v1::Block& block : results[id].blocks()) {
      EXPECT_GE(block.elapsed_ns(), 2'000'000);
    }
  }
  // Timed alternately, so the windows overlap.
  EXPECT_LT(results["1/0/1"].timed_start_boot_ns(),
            results["1/0/2"].timed_end_boot_ns());
  EXPECT_LT(results["1/0/2"].timed_start_boot_ns(),
            results["1/0/1"].timed_end_boot_ns());
}

TEST_F(RunnerTest, TimedWindowsOfOneDeviceNeverOverlap) {
  StartRunner();
  std::vector<v1::TrialSpec> trials;
  const Space space = SpaceOf(kMatmul);
  Random random(3);
  std::set<std::string> texts;
  for (int i = 1; i <= 6; ++i) {
    v1::TrialSpec spec = Trial(kMatmul, i);
    spec.mutable_schedule()->set_text(space.Print(*space.Sample(random)));
    trials.push_back(spec);
  }
  runner_->Start(Assign(trials));
  std::map<int64_t, int64_t> windows;
  for (const ResultLog::Entry& entry : log_.Wait(6)) {
    if (entry.result.timed_start_boot_ns() == 0) continue;
    windows[entry.result.timed_start_boot_ns()] =
        entry.result.timed_end_boot_ns();
  }
  ASSERT_GE(windows.size(), 2u);
  int64_t end = 0;
  for (const auto& [start, stop] : windows) {
    EXPECT_GT(start, end);
    end = stop;
  }
}

TEST_F(RunnerTest, AnotherHoldersCoreLockIsWaitedFor) {
  StartRunner();
  // Of the core that a timed run of one thread has.
  const int cpu = AllowedCpus().back();
  auto held = std::make_unique<CoreLocks::Held>(
      *CoreLocks(StateDir()).Take({cpu}, CoreLocks::Use::kTiming, [] {
        return false;
      }));
  // The runner builds meanwhile, then waits; its ticks stand still.
  runner_->Start(Assign({Trial(kMatmul)}));
  const SteadyTime start = RealClock().Steady();
  while (runner_->WorkTicks() == 0 &&
         RealClock().Steady() - start < absl::Seconds(30)) {
    sched_yield();
  }
  const int64_t released = RealClock().Steady().ns;
  held.reset();
  const std::vector<ResultLog::Entry> entries = log_.Wait(1);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].result.outcome(), v1::OUTCOME_OK);
  EXPECT_GT(entries[0].result.timed_start_boot_ns(), released);
}

TEST_F(RunnerTest, AStoppedAssignmentHandsNothingBack) {
  StartRunner();
  v1::Assignment assignment =
      Assign({Trial(kMatmul, 1), Trial("softmax(rows=3,cols=5)", 2)});
  const std::string id = assignment.assignment_id();
  runner_->Start(std::move(assignment));
  runner_->Stop(id);
  runner_->Stop("unknown");
  const v1::TrialResult next = RunOne(Trial("softmax(rows=5,cols=9)", 3));
  EXPECT_EQ(next.spec().trial_id(), "1/0/3");
  EXPECT_EQ(next.outcome(), v1::OUTCOME_OK) << next.detail();
}

TEST_F(RunnerTest, WhatRunsOfAFinishedAssignmentEndsAndTheRestIsDropped) {
  std::atomic<bool> open = true;
  RunnerOptions options;
  options.may_start = [&open](const std::string& id) {
    return open || id != "a1";
  };
  absl::Notification runs;
  options.on_window = [&](const std::string&, absl::Duration) {
    if (!runs.HasBeenNotified()) runs.Notify();
  };
  StartRunner(options);
  std::vector<v1::TrialSpec> trials;
  for (int i = 1; i <= 8; ++i) {
    trials.push_back(
        Trial("softmax(rows=3,cols=" + std::to_string(i + 4) + ")", i));
  }
  runner_->Start(Assign(trials));
  ASSERT_TRUE(runs.WaitForNotificationWithTimeout(absl::Minutes(1)));
  open = false;
  absl::Notification idle;
  runner_->Finish("a1", [&idle] { idle.Notify(); });
  ASSERT_TRUE(idle.WaitForNotificationWithTimeout(absl::Minutes(1)));
  const size_t before = log_.Wait(0).size();
  EXPECT_LT(before, trials.size());
  for (const ResultLog::Entry& entry : log_.Wait(0)) EXPECT_FALSE(entry.last);
  // Nothing of it comes any more; the device is free for others.
  expected_ = before;
  EXPECT_EQ(RunOne(Trial(kMatmul, 20)).spec().trial_id(), "1/0/20");
  // Of one that is not there, nothing runs.
  bool called = false;
  runner_->Finish("unknown", [&called] { called = true; });
  EXPECT_TRUE(called);
}

// It was timed to its end, and waits behind another trial's result.
TEST_F(RunnerTest, AResultThatWaitsToBeHandedBackSurvivesADrain) {
  std::atomic<bool> open = true;
  absl::Notification timed, blocks, go_on, idle;
  RunnerOptions options;
  options.may_start = [&open](const std::string&) { return open.load(); };
  options.on_window = [&](const std::string&, absl::Duration longest) {
    if (longest == absl::ZeroDuration()) timed.Notify();
  };
  // Without sessions, so that the result waits for nothing else.
  options.exec_prefix = {"/usr/bin/env"};
  before_result_ = [&](const v1::TrialResult& result) {
    if (result.outcome() != v1::OUTCOME_COMPILE_ERROR) return;
    blocks.Notify();
    go_on.WaitForNotification();
  };
  StartRunner(options);
  v1::TrialSpec wrong = Trial("softmax(rows=3,cols=5)", 2);
  wrong.mutable_schedule()->set_text("no schedule");
  runner_->Start(Assign({Trial(kMatmul, 1), wrong}));
  ASSERT_TRUE(blocks.WaitForNotificationWithTimeout(absl::Minutes(1)));
  ASSERT_TRUE(timed.WaitForNotificationWithTimeout(absl::Minutes(1)));
  // Nothing tells when the result waits; any moment must do.
  idle.WaitForNotificationWithTimeout(absl::Milliseconds(100));
  open = false;
  absl::Notification asked;
  std::thread drains([&] {
    runner_->Finish("a1", [&idle] { idle.Notify(); });
    asked.Notify();
  });
  asked.WaitForNotificationWithTimeout(absl::Milliseconds(100));
  go_on.Notify();
  drains.join();
  ASSERT_TRUE(idle.WaitForNotificationWithTimeout(absl::Minutes(1)));
  std::set<int64_t> handed_back;
  for (const ResultLog::Entry& entry : log_.Wait(2)) {
    handed_back.insert(entry.result.spec().ordinal());
  }
  EXPECT_EQ(handed_back, (std::set<int64_t>{1, 2}));
}

TEST_F(RunnerTest, NothingStartsOnceTheLeaseIsNearlyOver) {
  RunnerOptions options;
  options.may_start = [](const std::string& id) { return id != "a1"; };
  StartRunner(options);
  runner_->Start(Assign({Trial(kMatmul, 1)}));
  const v1::TrialResult result = RunOne(Trial(kMatmul, 2));
  EXPECT_EQ(result.spec().trial_id(), "1/0/2");
}

TEST_F(RunnerTest, AKeptReferenceThatWasDamagedIsMadeAgain) {
  StartRunner();
  EXPECT_EQ(RunOne(Trial(kMatmul)).outcome(), v1::OUTCOME_OK);
  runner_.reset();
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(StateDir() + "/references")) {
    files.push_back(entry.path());
  }
  ASSERT_EQ(files.size(), 1u);
  const auto size = std::filesystem::file_size(files[0]);
  {
    std::fstream file(files[0], std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(size - 1));
    file.put('x');
  }
  StartRunner();
  const v1::TrialResult result = RunOne(Trial(kMatmul, 2));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
}

TEST_F(RunnerTest, AnExecutionPrefixStandsBeforeEveryWorker) {
  RunnerOptions options;
  options.exec_prefix = {"/usr/bin/env", "LANG=C"};
  StartRunner(options);
  const v1::TrialResult result = RunOne(Trial(kMatmul));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
}

TEST_F(RunnerTest, NamesAWorkerProgramThatIsMissing) {
  StartRunner();
  RunnerOptions options;
  options.worker_dir = REGATTA_BIN_DIR;
  options.build_worker = "no-such-worker";
  auto runner = CreateTrialRunner(options, spawner_, {});
  EXPECT_EQ(runner.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(runner.status().message().find("no-such-worker"),
            absl::string_view::npos);
}

TEST_F(RunnerTest, RefusesToRunWithoutARequiredFeature) {
  StartRunner();
  RunnerOptions options;
  options.worker_dir = REGATTA_BIN_DIR;
  options.required_sandbox = {"moat"};
  auto runner = CreateTrialRunner(options, spawner_, {});
  EXPECT_EQ(runner.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RunnerTest, WithoutASpawnerTrialsAreTheBoardsFault) {
  StartRunner();
  EXPECT_EQ(RunOne(Trial(kMatmul, 1)).outcome(), v1::OUTCOME_OK);
  kill(spawner_->pid(), SIGKILL);
  const v1::TrialResult result = RunOne(Trial("softmax(rows=5,cols=9)", 2));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_DEVICE_FAULT) << result.detail();
}

}  // namespace
}  // namespace regatta
