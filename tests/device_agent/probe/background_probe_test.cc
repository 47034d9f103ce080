#include "device_agent/probe/background_probe.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

class BackgroundProbeTest : public testing::Test {
 protected:
  BackgroundProbeTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "bg-XXXXXX").string();
    dir_ = mkdtemp(pattern.data());
    Governor("performance");
  }
  ~BackgroundProbeTest() override { std::filesystem::remove_all(dir_); }

  void Governor(const std::string& name) {
    const std::string folder = dir_ + "/sys/devices/system/cpu/cpu4/cpufreq";
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/scaling_governor") << name << "\n";
  }

  BackgroundProbe::Options Options() {
    BackgroundProbe::Options options;
    options.device.set_device_id("d");
    options.device.set_cpu_list("4");
    options.device.set_health("probing");
    options.cpus = {4};
    options.boot_id = "b";
    options.subject = "0";
    options.cache_path = dir_ + "/probe";
    options.exclusively = [](const std::function<void()>& part,
                             const std::function<bool()>&) {
      part();
      return absl::OkStatus();
    };
    options.root = dir_;
    options.health_period = absl::Milliseconds(5);
    options.on_change = [this](v1::DeviceInfo device) {
      std::lock_guard lock(mutex_);
      seen_.push_back(std::move(device));
      changed_.notify_all();
    };
    options.probe =
        [this](const CpuProbeOptions& probe) -> absl::StatusOr<CpuProbeResult> {
      ++probes_;
      EXPECT_EQ(probe.cpu, 4);
      if (!failure_.ok()) return failure_;
      CpuProbeResult result;
      result.caches.l1_bytes = 32768;
      result.peak_flops_per_s = 1e11;
      result.bandwidth_bytes_per_s = 1e10;
      result.noise_floor = noise_;
      return result;
    };
    return options;
  }
  // The nth change; a default one when it does not come.
  v1::DeviceInfo Change(size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20),
                      [&] { return seen_.size() > n; });
    return seen_.size() > n ? seen_[n] : v1::DeviceInfo();
  }

  std::string dir_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::DeviceInfo> seen_;
  std::atomic<int> probes_ = 0;
  absl::Status failure_;
  std::atomic<double> noise_ = 0.01;
};

TEST_F(BackgroundProbeTest, ReportsWhatItFoundOnceAndRemembersIt) {
  {
    BackgroundProbe probe(Options());
    const v1::DeviceInfo device = Change(0);
    EXPECT_EQ(device.device_id(), "d");
    EXPECT_EQ(device.health(), "ok");
    EXPECT_EQ(device.l1_bytes(), 32768);
    EXPECT_TRUE(device.has_noise_floor());
  }
  BackgroundProbe again(Options());
  EXPECT_EQ(Change(1).peak_flops_per_s(), 1e11);
  EXPECT_EQ(probes_, 1);
}

TEST_F(BackgroundProbeTest, WhatABusyMachineShowedIsNotRemembered) {
  noise_ = 66.3;
  {
    BackgroundProbe probe(Options());
    const v1::DeviceInfo device = Change(0);
    EXPECT_FALSE(device.has_noise_floor());
    EXPECT_EQ(device.noise_floor(), 0);
    EXPECT_EQ(device.health(), "ok") << "which is about clocks";
    EXPECT_EQ(device.l1_bytes(), 32768);
  }
  BackgroundProbe again(Options());
  EXPECT_FALSE(Change(1).has_noise_floor());
  EXPECT_EQ(probes_, 2);
}

TEST_F(BackgroundProbeTest, ABusyMachineIsProbedAgainUntilItIsQuiet) {
  FakeClock clock;
  BackgroundProbe::Options options = Options();
  options.clock = &clock;
  noise_ = 0.5;
  BackgroundProbe probe(std::move(options));
  EXPECT_FALSE(Change(0).has_noise_floor());
  noise_ = 0.02;
  clock.Advance(absl::Minutes(1) + absl::Seconds(1));
  EXPECT_TRUE(Change(1).has_noise_floor());
  EXPECT_EQ(Change(1).noise_floor(), 0.02);
  EXPECT_EQ(Change(1).health(), "ok");
  // What is known is looked at again, much later; the median counts.
  noise_ = 0.04;
  clock.Advance(absl::Minutes(61));
  EXPECT_DOUBLE_EQ(Change(2).noise_floor(), 0.03);
}

TEST(ProbeHistoryTest, KeepsTheMedianOfUndisturbedProbesAndTheBestRates) {
  ProbeHistory history;
  EXPECT_FALSE(history.Answer().has_value());
  CpuProbeResult result;
  const auto add = [&](double noise, double peak) {
    result.noise_floor = noise;
    result.peak_flops_per_s = peak;
    history.Add(result);
    return *history.Answer();
  };
  EXPECT_EQ(add(5, 1).noise_floor, 5);
  EXPECT_FALSE(Undisturbed(add(3, 2)));
  EXPECT_EQ(add(0.01, 1).noise_floor, 0.01);
  EXPECT_EQ(add(4, 1).noise_floor, 0.01);
  EXPECT_DOUBLE_EQ(add(0.09, 1).noise_floor, 0.05);
  const CpuProbeResult answer = add(0.02, 1.5);
  EXPECT_EQ(answer.noise_floor, 0.02);
  EXPECT_EQ(answer.peak_flops_per_s, 2);
}

TEST_F(BackgroundProbeTest, TellsWhenTheHealthChanges) {
  BackgroundProbe probe(Options());
  EXPECT_EQ(Change(0).health(), "ok");
  Governor("powersave");
  EXPECT_THAT(Change(1).health(), HasSubstr("powersave"));
  EXPECT_EQ(Change(1).l1_bytes(), 32768);
}

TEST_F(BackgroundProbeTest, AFailedProbeLeavesTheDeviceUsable) {
  failure_ = absl::ResourceExhaustedError("no memory");
  BackgroundProbe probe(Options());
  const v1::DeviceInfo device = Change(0);
  EXPECT_EQ(device.health(), "not probed: no memory");
  EXPECT_FALSE(device.has_noise_floor());
}

TEST_F(BackgroundProbeTest, MeasuresOnlyUnderTheLockAndStopsWaitingForIt) {
  BackgroundProbe::Options options = Options();
  options.probe =
      [](const CpuProbeOptions& probe) -> absl::StatusOr<CpuProbeResult> {
    return probe.exclusively([] { ADD_FAILURE() << "ran without the lock"; });
  };
  std::atomic<bool> waiting = false;
  options.exclusively = [&](const std::function<void()>&,
                            const std::function<bool()>& stopped) {
    waiting = true;
    while (!stopped()) std::this_thread::yield();
    return absl::CancelledError("stopped");
  };
  {
    BackgroundProbe probe(options);
    while (!waiting) std::this_thread::yield();
  }
  EXPECT_TRUE(seen_.empty());
}

}  // namespace
}  // namespace regatta
