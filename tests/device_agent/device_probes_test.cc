// What an agent tells of its devices as probing and measuring go on.
#include "device_agent/devices/device_probes.h"

#include <condition_variable>
#include <cstdlib>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

class OneDevice : public DeviceProvider {
 public:
  std::string_view kind() const override { return "cpu"; }
  absl::StatusOr<std::vector<ServedDevice>> Find(const Board&) const override {
    return std::vector<ServedDevice>();
  }
  absl::StatusOr<CpuProbeResult> Probe(const Board&, const ServedDevice&,
                                       const CpuProbeOptions&) const override {
    CpuProbeResult result;
    result.peak_flops_per_s = 1e11;
    result.noise_floor = 0.01;
    return result;
  }
};

class DeviceProbesTest : public ::testing::Test {
 protected:
  DeviceProbesTest() {
    folder_ = ::testing::TempDir() + "/probes-XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    options_.state_dir = options_.lock_folder = folder_;
    options_.board.machine.boot_id = "boot";
    FoundDevice& device = options_.devices.emplace_back();
    device.provider = &provider_;
    device.served.info.set_device_id("d");
    device.served.info.set_cpu_list("0");
    device.served.info.set_health("probing");
    options_.on_device = [](const v1::DeviceInfo&) {};
    options_.on_devices = [this](const std::vector<v1::DeviceInfo>& now) {
      std::lock_guard lock(mutex_);
      now_ = now.at(0);
      changed_.notify_all();
    };
  }
  ~DeviceProbesTest() override { std::filesystem::remove_all(folder_); }

  // What is told once it was probed.
  v1::DeviceInfo Probed() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [this] {
      return now_.peak_flops_per_s() > 0;
    }));
    return now_;
  }
  v1::DeviceInfo Now() {
    std::lock_guard lock(mutex_);
    return now_;
  }

  OneDevice provider_;
  std::string folder_;
  DeviceProbes::Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  v1::DeviceInfo now_;
};

// What reads health asks whether it is "ok": counts beside it have their own
// fields.
TEST_F(DeviceProbesTest, DriftAndThrottlingAreCountedApartFromHealth) {
  DeviceProbes probes(options_);
  const std::string health = Probed().health();
  MeasuringState state;
  state.sessions_closed = 2;
  probes.SetMeasuring("d", state);
  EXPECT_EQ(Now().sessions_closed(), 2);
  EXPECT_EQ(Now().throttled_blocks(), 0);
  state.throttled_blocks = 7;
  probes.SetMeasuring("d", state);
  EXPECT_EQ(Now().sessions_closed(), 2);
  EXPECT_EQ(Now().throttled_blocks(), 7);
  EXPECT_EQ(Now().health(), health);
}

TEST_F(DeviceProbesTest, WhatIsToldBeforeProbingEndedIsKept) {
  DeviceProbes probes(options_);
  MeasuringState state;
  state.throttled_blocks = 3;
  probes.SetMeasuring("d", state);
  const v1::DeviceInfo probed = Probed();
  EXPECT_EQ(probed.throttled_blocks(), 3);
  probes.SetMeasuring("no such device", state);
  EXPECT_EQ(Now().throttled_blocks(), 3);
}

}  // namespace
}  // namespace regatta
