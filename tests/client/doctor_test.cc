// What `regatta doctor` makes of this machine, of made-up ones and of boards.
#include "client/cli/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "client/cli/doctor/device.h"
#include "client/cli/doctor/events.h"
#include "client/cli/doctor/judge.h"
#include "storage/tuning_log.h"
#include "tests/client/doctor_findings.h"
#include "tests/support/process.h"

namespace regatta::cli {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;
using testing::WriteFile;

TEST(Doctor, AHookThatFailedIsNamedUntilTheBoardIsBack) {
  v1::DeviceHistoryResponse history;
  const auto happens = [&](const char* what, const char* reason = "") {
    v1::DeviceEvent& event = *history.add_events();
    event.set_what(what);
    event.set_reason(reason);
    event.set_by("ann");
    return ExamineEvents(history);
  };
  EXPECT_TRUE(ExamineEvents(history).empty());
  EXPECT_TRUE(happens("power_cycle", "hangs").empty());
  happens("power hook failed", "/bin/pdu ended with exit code 3");
  const auto failed =
      happens("power hook failed", "/bin/pdu ended with exit code 4");
  ASSERT_EQ(failed.size(), 1u);
  ExpectSound(failed);
  EXPECT_EQ(failed[0].level, Level::kWarn);
  EXPECT_THAT(failed[0].what, HasSubstr("power_cycle of ann failed 2 time(s)"));
  EXPECT_THAT(failed[0].what, HasSubstr("exit code 4"));
  EXPECT_TRUE(happens("rebooted").empty());
  EXPECT_EQ(happens("power hook failed").size(), 1u);
  EXPECT_TRUE(happens("power_on").empty()) << "a new order, not failed yet";
}

TEST(Doctor, AnIdentityThatDoesNotCountIsNoMatterOfTheServer) {
  TempDir folder;
  DoctorOptions options;
  options.server.server = "127.0.0.1:1";
  options.server.tls = folder.path();
  const auto findings = ExamineServer(options);
  ASSERT_EQ(findings.size(), 1u);
  ExpectSound(findings);
  EXPECT_EQ(findings[0].check, "certificate");
}

TEST(Doctor, WhoHangsIsToldFromWhoIsNotThere) {
  const Finding hangs = JudgeSilence(
      "the tracker at 10.0.0.1:7471 does not answer: Deadline Exceeded");
  ExpectSound({hangs});
  EXPECT_THAT(hangs.what, HasSubstr("the tracker hangs"));
  EXPECT_THAT(hangs.remedy, HasSubstr("systemctl restart regatta-tracker"));
  EXPECT_THAT(JudgeSilence("the tracker at h:1 does not answer: connection "
                           "attempt timed out before receiving SETTINGS frame")
                  .what,
              HasSubstr("the tracker hangs"));
  const Finding gone =
      JudgeSilence("the tracker at h:1 does not answer: Connection refused");
  EXPECT_EQ(gone.what,
            "the tracker at h:1 does not answer: Connection refused");
  EXPECT_THAT(gone.remedy, HasSubstr("start regatta-tracker"));
}

TEST(Doctor, ThisMachineBuildsAndTicks) {
  const DoctorOptions options;
  const std::vector<Finding> tools = ExamineToolchain(options);
  ExpectSound(tools);
  EXPECT_EQ(Get(tools, "cpu")->level, Level::kOk) << Get(tools, "cpu")->what;
  EXPECT_THAT(Get(tools, "cpu")->what, HasSubstr("LLVM 19"));
  const std::vector<Finding> clocks = ExamineClocks(options);
  ExpectSound(clocks);
  EXPECT_EQ(Get(clocks, "resolution")->level, Level::kOk)
      << Get(clocks, "resolution")->what;
}

TEST(Doctor, AGpuWithoutItsLibrariesFails) {
  TempDir root;
  std::filesystem::create_directories(root.path() + "/dev");
  WriteFile(root.path() + "/dev/nvidiactl", "");
  DoctorOptions options;
  options.root = root.path();
  const std::vector<Finding> tools = ExamineToolchain(options);
  ExpectSound(tools);
  for (const char* check : {"nvrtc", "cuda driver"}) {
    const Finding finding = *Get(tools, check);
    // On a machine that has the library it is found all the same.
    if (finding.what.find("found") != std::string::npos) continue;
    EXPECT_EQ(finding.level, Level::kFail) << finding.what;
  }
}

[[noreturn]] void SayNvrtc(const char* toolkit) {
  setenv("CUDA_PATH", toolkit, 1);
  const Finding finding = *Get(ExamineToolchain(DoctorOptions()), "nvrtc");
  std::cerr << LevelName(finding.level) << " " << finding.what
            << " do: " << finding.remedy << std::endl;
  _exit(0);
}

// Whether another one is there or not.
TEST(Doctor, AToolkitThatIsNamedAndOfNoUseIsAWarning) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(SayNvrtc("/nowhere"), ::testing::ExitedWithCode(0),
              "^(warn|fail) .*/nowhere.* do: .*CUDA_PATH");
}

TEST(Doctor, ADriverListedWithoutALoaderAndTheReverse) {
  TempDir root;
  DoctorOptions options;
  options.root = root.path();
  const Finding none = *Get(ExamineToolchain(options), "opencl");
  std::filesystem::create_directories(root.path() + "/etc/OpenCL/vendors");
  WriteFile(root.path() + "/etc/OpenCL/vendors/x.icd", "libx.so");
  const Finding one = *Get(ExamineToolchain(options), "opencl");
  const bool has_loader = one.level == Level::kOk;
  EXPECT_EQ(none.level, has_loader ? Level::kWarn : Level::kOk) << none.what;
  if (!has_loader) {
    EXPECT_EQ(one.level, Level::kFail);
    EXPECT_THAT(one.remedy, HasSubstr("apt-get install ocl-icd-libopencl1"));
  }
}

TEST(Doctor, AGovernorThatWandersIsToldWithItsRemedy) {
  TempDir root;
  for (int cpu = 0; cpu < 1024; ++cpu) {
    const std::string folder = root.path() + "/sys/devices/system/cpu/cpu" +
                               std::to_string(cpu) + "/cpufreq";
    std::filesystem::create_directories(folder);
    WriteFile(folder + "/scaling_governor", "powersave\n");
  }
  DoctorOptions options;
  options.root = root.path();
  const Finding governor = *Get(ExamineClocks(options), "governor");
  EXPECT_EQ(governor.level, Level::kWarn);
  EXPECT_THAT(governor.what, HasSubstr("powersave"));
  EXPECT_EQ(governor.remedy, "cpupower frequency-set -g performance");
  std::filesystem::create_directories(root.path() + "/sys/firmware/acpi");
  const std::string profile =
      root.path() + "/sys/firmware/acpi/platform_profile";
  WriteFile(profile, "low-power\n");
  WriteFile(profile + "_choices", "low-power performance\n");
  const Finding both = *Get(ExamineClocks(options), "governor");
  EXPECT_THAT(both.what, HasSubstr("powersave"));
  EXPECT_THAT(both.what, HasSubstr("; platform profile low-power: times"));
  EXPECT_EQ(both.remedy,
            "cpupower frequency-set -g performance; echo performance > "
            "/sys/firmware/acpi/platform_profile");
}

TEST(Doctor, MissingSandboxFeaturesSayWhatTheyCost) {
  const std::vector<Finding> full = JudgeSandbox(
      {"no_new_privs", "uid", "mountns", "netns", "ipcns", "cgroup_memory",
       "cgroup_pids", "cgroup_kill", "seccomp", "landlock", "tight"});
  ExpectSound(full);
  for (const Finding& finding : full) {
    EXPECT_EQ(finding.level, Level::kOk) << finding.check;
  }
  // As another user, without cgroups and without a network namespace.
  const std::vector<Finding> poor =
      JudgeSandbox({"no_new_privs", "userns", "mountns", "ipcns", "watch",
                    "seccomp", "landlock", "tight"});
  EXPECT_EQ(Get(poor, "uid")->level, Level::kOk);
  EXPECT_EQ(Get(poor, "netns")->level, Level::kWarn);
  EXPECT_THAT(Get(poor, "netns")->what, HasSubstr("reach the network"));
  EXPECT_EQ(Get(poor, "cgroup_memory")->level, Level::kWarn);
  EXPECT_THAT(Get(poor, "cgroup_memory")->what, HasSubstr("every 20 ms"));
  EXPECT_EQ(Get(JudgeSandbox({}), "no_new_privs")->level, Level::kFail);
}

TEST(Doctor, ALogIsOpenedAndADamagedOneFails) {
  TempDir dir;
  DoctorOptions options;
  EXPECT_EQ(Get(ExamineLog(options), "place")->level, Level::kOk);
  options.log = dir.path() + "/log";
  EXPECT_EQ(Get(ExamineLog(options), "opens")->level, Level::kWarn);
  { EXPECT_TRUE(OpenTuningLog(options.log).ok()); }
  const std::vector<Finding> whole = ExamineLog(options);
  ExpectSound(whole);
  EXPECT_EQ(Get(whole, "opens")->level, Level::kOk)
      << Get(whole, "opens")->what;
  EXPECT_THAT(Get(whole, "opens")->what, HasSubstr("0 record(s)"));
  {
    const auto held = OpenTuningLog(options.log, {.holder = "a server"});
    const Finding opens = *Get(ExamineLog(options), "opens");
    EXPECT_EQ(opens.level, Level::kOk);
    EXPECT_THAT(opens.what, HasSubstr("held by"));
  }
  WriteFile(options.log, std::string(9000, 'z'));
  const std::vector<Finding> damaged = ExamineLog(options);
  ExpectSound(damaged);
  EXPECT_EQ(Get(damaged, "opens")->level, Level::kFail);
  EXPECT_THAT(Get(damaged, "opens")->remedy, HasSubstr("regatta log restore"));
  options.log = dir.path() + "/no/log";
  EXPECT_EQ(Get(ExamineLog(options), "place")->level, Level::kFail);
}

v1::DeviceStatus GoodBoard() {
  v1::DeviceStatus device;
  device.mutable_info()->set_device_id("pi-1");
  device.mutable_info()->set_health("ok");
  device.mutable_info()->set_cores(4);
  device.mutable_info()->set_cpu_list("0-3");
  device.mutable_info()->set_credit(3);
  device.mutable_info()->set_has_noise_floor(true);
  device.mutable_info()->set_noise_floor(0.004);
  device.set_presence(v1::PRESENCE_ONLINE);
  device.set_state("idle");
  device.set_agent_version("1.0");
  device.set_compiler_version("aaaa/LLVM 19.1.7");
  device.set_sandbox(
      "no_new_privs,uid,mountns,netns,ipcns,cgroup_memory,cgroup_pids,"
      "cgroup_kill,seccomp,landlock,tight");
  device.mutable_standing()->set_trust(v1::TRUST_HEALTHY);
  device.mutable_standing()->set_operator_state(v1::OPERATOR_STATE_NORMAL);
  device.set_has_clock_offset(true);
  device.set_clock_offset_ms(-3);
  device.set_canary_passed_ms(60'000);
  return device;
}

v1::ListDevicesResponse Fleet() {
  v1::ListDevicesResponse fleet;
  fleet.mutable_server()->set_version("1.0");
  fleet.mutable_server()->set_compiler_version("aaaa/LLVM 19.1.7");
  return fleet;
}

TEST(DoctorOfABoard, AGoodOneHasNothingToBeSaid) {
  const std::vector<Finding> findings = ExamineDevice(GoodBoard(), Fleet());
  ExpectSound(findings);
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.level, Level::kOk) << finding.check << finding.what;
  }
}

TEST(DoctorOfABoard, WhatIsWrongIsToldWithItsRemedy) {
  v1::DeviceStatus device = GoodBoard();
  device.set_presence(v1::PRESENCE_LOST);
  device.set_obstacle("quarantined by tracker: two boards fail");
  device.mutable_standing()->set_trust(v1::TRUST_QUARANTINED);
  device.mutable_standing()->set_canary_failures(2);
  device.set_compiler_version("bbbb/LLVM 19.1.7");
  device.set_clock_offset_ms(7'200'000);
  device.mutable_info()->set_uncontrolled(
      "governor powersave on cpu0; run: cpupower frequency-set -g schedutil; "
      "the firmware limits the clock (throttled); give it a fan, then run: "
      "vcgencmd get_throttled");
  device.mutable_info()->set_health("uncontrolled: " +
                                    device.info().uncontrolled());
  device.mutable_info()->set_noise_floor(0.2);
  device.set_measure_only(true);
  device.set_sandbox("no_new_privs,uid,seccomp,tight,watch");
  const std::vector<Finding> findings = ExamineDevice(device, Fleet());
  ExpectSound(findings);
  EXPECT_EQ(Get(findings, "presence")->level, Level::kFail);
  EXPECT_EQ(Get(findings, "work")->level, Level::kFail);
  EXPECT_THAT(Get(findings, "work")->remedy,
              HasSubstr("regatta device release pi-1"));
  EXPECT_EQ(Get(findings, "canary")->level, Level::kWarn);
  EXPECT_EQ(Get(findings, "versions")->level, Level::kFail);
  EXPECT_EQ(Get(findings, "clock")->level, Level::kWarn);
  EXPECT_EQ(Get(findings, "health")->level, Level::kWarn);
  EXPECT_EQ(Get(findings, "health")->remedy,
            "on the board: cpupower frequency-set -g schedutil; give it a fan, "
            "then run: vcgencmd get_throttled");
  EXPECT_EQ(Get(findings, "noise")->level, Level::kWarn);
  EXPECT_EQ(Get(findings, "limits")->level, Level::kFail);
  EXPECT_EQ(Get(findings, "sandbox netns")->level, Level::kWarn);
}

TEST(DoctorOfBoards, ThoseThatAreOutAreNamed) {
  v1::ListDevicesResponse fleet = Fleet();
  EXPECT_EQ(ExamineBoards(fleet).level, Level::kWarn);
  *fleet.add_devices() = GoodBoard();
  EXPECT_EQ(ExamineBoards(fleet).level, Level::kOk);
  EXPECT_EQ(ExamineBoards(fleet).what, "1 board(s), one build");
  for (const char* id : {"pi-2", "pi-3", "pi-4", "pi-5"}) {
    *fleet.add_devices() = GoodBoard();
    fleet.mutable_devices()->rbegin()->mutable_info()->set_device_id(id);
  }
  fleet.mutable_devices(1)->set_presence(v1::PRESENCE_LOST);
  fleet.mutable_devices(2)->mutable_standing()->set_trust(
      v1::TRUST_QUARANTINED);
  fleet.mutable_devices(3)->mutable_standing()->set_trust(v1::TRUST_BROKEN);
  // Somebody took it out, and off.
  fleet.mutable_devices(4)->set_presence(v1::PRESENCE_LOST);
  fleet.mutable_devices(4)->mutable_standing()->set_operator_state(
      v1::OPERATOR_STATE_MAINTENANCE);
  const Finding out = ExamineBoards(fleet);
  EXPECT_EQ(out.level, Level::kWarn);
  EXPECT_EQ(out.what,
            "5 board(s); 3 of no use now: pi-2 lost, pi-3 quarantined, pi-4 "
            "broken, one build");
  EXPECT_EQ(out.remedy, "regatta doctor --device ID");
  fleet.mutable_devices(0)->set_agent_version("0.9");
  const Finding old = ExamineBoards(fleet);
  EXPECT_THAT(old.what, HasSubstr("1 of another build"));
  EXPECT_THAT(old.what, HasSubstr("differs: pi-1"));
  EXPECT_THAT(old.remedy, HasSubstr("deploy/install-agent"));
}

TEST(DoctorOfABoard, CountsOfMeasuringAreNoTrouble) {
  v1::DeviceStatus device = GoodBoard();
  device.mutable_info()->set_sessions_closed(3);
  device.mutable_info()->set_throttled_blocks(12);
  for (const char* health :
       {"ok", "ok; 3 measuring sessions closed by drift"}) {
    device.mutable_info()->set_health(health);
    const std::vector<Finding> findings = ExamineDevice(device, Fleet());
    EXPECT_EQ(Get(findings, "health")->level, Level::kOk) << health;
    EXPECT_EQ(Get(findings, "measuring")->level, Level::kOk);
    EXPECT_THAT(Get(findings, "measuring")->what,
                HasSubstr("3 measuring sessions closed by drift, 12 blocks"));
  }
  device.mutable_info()->set_health("not probed: the probe was killed");
  EXPECT_EQ(Get(ExamineDevice(device, Fleet()), "health")->level, Level::kWarn);
}

TEST(DoctorOfABoard, WaitingForApprovalNamesTheCommand) {
  v1::DeviceStatus device = GoodBoard();
  device.set_obstacle("waiting for approval");
  device.mutable_standing()->set_trust(v1::TRUST_PENDING);
  const Finding work = *Get(ExamineDevice(device, Fleet()), "work");
  EXPECT_EQ(work.level, Level::kWarn);
  EXPECT_EQ(work.remedy, "regatta device approve pi-1");
}

}  // namespace
}  // namespace regatta::cli
