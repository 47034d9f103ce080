#include "device_agent/probe/clock_control.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace regatta {
namespace {

class ClockControlTest : public testing::Test {
 protected:
  ClockControlTest() {
    root_ = testing::TempDir() + "/clocks-XXXXXX";
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
  }
  ~ClockControlTest() override { std::filesystem::remove_all(root_); }

  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path file(root_ + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void Governor(int cpu, const std::string& name) {
    Put("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
            "/cpufreq/scaling_governor",
        name);
  }
  std::string Found(const std::vector<int>& cpus,
                    const ClockPolicy& policy = {}) {
    return UncontrolledClocks(root_, cpus, policy);
  }

  std::string root_;
};

TEST_F(ClockControlTest, AllGovernorsAsTheClassAsksIsWell) {
  Governor(0, "performance");
  Governor(1, "powersave");  // of another device
  EXPECT_EQ(Found({0}), "");
  EXPECT_EQ(HealthOf(""), "ok");
}

TEST_F(ClockControlTest, AnotherGovernorIsNamedWithTheCommandThatMendsIt) {
  Governor(0, "powersave");
  EXPECT_EQ(HealthOf(Found({0})),
            "uncontrolled: governor powersave on cpu0; run: cpupower "
            "frequency-set -g performance");
  Governor(1, "performance");
  Governor(2, "powersave");
  Governor(3, "powersave");
  Governor(4, "ondemand");
  EXPECT_EQ(Found({0, 1, 2, 3, 4}),
            "governor ondemand on cpu4 and governor powersave on cpu0,2-3; "
            "run: cpupower frequency-set -g performance");
}

TEST_F(ClockControlTest, AClassMayAskForAnotherGovernor) {
  Governor(0, "schedutil");
  Governor(1, "performance");
  EXPECT_EQ(Found({0}, {"schedutil"}), "");
  EXPECT_EQ(Found({0, 1}, {"schedutil"}),
            "governor performance on cpu1; run: cpupower frequency-set -g "
            "schedutil");
  // Its power mode is its own affair too.
  Put("/var/lib/nvpmodel/status", "pmode:0002 fmode:quiet");
  EXPECT_EQ(Found({0}, {"schedutil"}), "");
}

TEST_F(ClockControlTest, WithoutCpufreqThereIsNothingToRun) {
  EXPECT_EQ(HealthOf(Found({0, 1})), "uncontrolled: no cpufreq governor");
}

TEST_F(ClockControlTest, AJetsonsLowerPowerModeIsNamed) {
  Governor(0, "performance");
  Put("/var/lib/nvpmodel/status", "pmode:0000 fmode:cool");
  EXPECT_EQ(Found({0}), "");
  Put("/var/lib/nvpmodel/status", "pmode:0002 fmode:cool");
  EXPECT_EQ(Found({0}), "nvpmodel power mode 2; run: nvpmodel -m 0");
  Governor(0, "schedutil");
  EXPECT_EQ(Found({0}),
            "governor schedutil on cpu0; run: cpupower frequency-set -g "
            "performance; nvpmodel power mode 2; run: nvpmodel -m 0");
}

TEST_F(ClockControlTest, WhatWasFoundComesApartAgain) {
  Governor(0, "schedutil");
  Put("/var/lib/nvpmodel/status", "pmode:0002 fmode:cool");
  Put("/sys/devices/platform/soc/soc:firmware/get_throttled", "4");
  const std::vector<ClockFinding> findings = ClockFindings(Found({0}));
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].what, "governor schedutil on cpu0");
  EXPECT_EQ(findings[0].remedy, "cpupower frequency-set -g performance");
  EXPECT_EQ(findings[1].what, "nvpmodel power mode 2");
  EXPECT_EQ(findings[1].remedy, "nvpmodel -m 0");
  EXPECT_EQ(findings[2].what, "the firmware limits the clock (throttled)");
  EXPECT_EQ(findings[2].remedy,
            "give it the board's own power supply and a fan, then run: "
            "vcgencmd get_throttled");
  EXPECT_TRUE(ClockFindings("").empty());
  ASSERT_EQ(ClockFindings("no cpufreq governor").size(), 1u);
  EXPECT_EQ(ClockFindings("no cpufreq governor")[0].remedy, "");
}

TEST_F(ClockControlTest, AFirmwareThatLimitsARaspberryPiNowIsNamed) {
  Governor(0, "performance");
  const std::string file =
      "/sys/devices/platform/soc/soc:firmware/get_throttled";
  Put(file, "50000");  // has been, is not now
  EXPECT_EQ(Found({0}), "");
  Put(file, "50005");
  EXPECT_EQ(Found({0}),
            "the firmware limits the clock (under-voltage, throttled); give "
            "it the board's own power supply and a fan, then run: vcgencmd "
            "get_throttled");
}

TEST_F(ClockControlTest, ALowerPlatformProfileIsNamedWhereThereIsAHigher) {
  Governor(0, "performance");
  Put("/sys/firmware/acpi/platform_profile", "low-power");
  EXPECT_EQ(Found({0}), "");
  Put("/sys/firmware/acpi/platform_profile_choices",
      "low-power balanced performance");
  EXPECT_EQ(Found({0}),
            "platform profile low-power; run: echo performance > "
            "/sys/firmware/acpi/platform_profile");
}

TEST_F(ClockControlTest, FilesWithNonsenseSayNothing) {
  Governor(0, "performance");
  Put("/var/lib/nvpmodel/status", "pmode:x");
  Put("/sys/devices/platform/soc/soc:firmware/get_throttled", "");
  Put("/sys/firmware/acpi/platform_profile", "");
  EXPECT_EQ(Found({0}), "");
}

}  // namespace
}  // namespace regatta
