#include "device_agent/probe/machine.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A machine made of files.
class MachineTest : public testing::Test {
 protected:
  MachineTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "machine-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~MachineTest() override { std::filesystem::remove_all(root_); }
  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  std::string root_;
};

TEST_F(MachineTest, TellsOfItsOwnProcessorsAndOfWhatIsForAll) {
  Put("/proc/cpuinfo",
      "processor\t: 0\nCPU part\t: 0xd03\n\nprocessor\t: 1\n"
      "CPU part\t: 0xd08\n\nprocessor\t: 2\nCPU part\t: 0xd08\n\n"
      "Hardware\t: BCM2711\n");
  const v1::BoardProcessor processor = ReadProcessor(root_, {1, 2});
  EXPECT_FALSE(processor.architecture().empty());
  EXPECT_EQ(processor.cpuinfo(),
            "processor\t: 1\nCPU part\t: 0xd08\n\nprocessor\t: 2\n"
            "CPU part\t: 0xd08\n\nHardware\t: BCM2711\n\n\n");
  // A machine of a thousand processors is told of in part.
  std::string text;
  for (int cpu = 0; cpu < 1000; ++cpu) {
    text += "processor\t: 0\nflags\t: " + std::string(1000, 'f') + "\n\n";
  }
  Put("/proc/cpuinfo", text);
  EXPECT_LE(ReadProcessor(root_, {0}).cpuinfo().size(), 16u << 10);
  EXPECT_GT(ReadProcessor(root_, {0}).cpuinfo().size(), 10u << 10);
}

TEST_F(MachineTest, ReadsWhatTheSystemSays) {
  Put("/etc/hostname", "lab7.example.org\n");
  Put("/etc/machine-id", "0123abcd\n");
  Put("/proc/sys/kernel/random/boot_id", "b-1\n");
  Put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9654\n");
  Put("/proc/meminfo", "MemFree: 1 kB\nMemTotal:       16384 kB\n");
  const Machine machine = ReadMachine(root_);
  EXPECT_EQ(machine.hostname, "lab7.example.org");
  EXPECT_EQ(machine.machine_id, "0123abcd");
  EXPECT_EQ(machine.boot_id, "b-1");
  EXPECT_EQ(machine.marketing_name, "AMD EPYC 9654");
  EXPECT_EQ(machine.memory_bytes, 16'777'216);
}

TEST_F(MachineTest, MemoryIsWhatTheGroupsAroundThisProcessLeaveOfIt) {
  Put("/proc/meminfo", "MemTotal:       16384 kB\n");
  Put("/proc/self/cgroup", "0::/box/agent\n");
  Put("/proc/self/mountinfo",
      "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  for (const char* group : {"", "/box", "/box/agent"}) {
    Put(absl::StrCat("/sys/fs/cgroup", group, "/cgroup.procs"), "");
  }
  EXPECT_EQ(MachineMemoryBytes(root_), 16'777'216);
  Put("/sys/fs/cgroup/box/agent/memory.max", "max\n");
  EXPECT_EQ(MachineMemoryBytes(root_), 16'777'216);
  Put("/sys/fs/cgroup/box/memory.max", "1048576\n");
  EXPECT_EQ(MachineMemoryBytes(root_), 1'048'576);
  Put("/sys/fs/cgroup/box/agent/memory.max", "2097152\n");
  EXPECT_EQ(ReadMachine(root_).memory_bytes, 1'048'576);
}

TEST_F(MachineTest, MemoryOfVersion1OfControlGroupsIsLimitedAlike) {
  Put("/proc/meminfo", "MemTotal:       16384 kB\n");
  Put("/proc/self/cgroup", "4:memory:/box\n0::/\n");
  Put("/proc/self/mountinfo",
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  Put("/sys/fs/cgroup/memory/box/cgroup.procs", "");
  Put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes",
      "9223372036854771712\n");
  EXPECT_EQ(MachineMemoryBytes(root_), 16'777'216);
  Put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(MachineMemoryBytes(root_), 1'048'576);
}

TEST_F(MachineTest, AMachineThatSaysNothingIsNoError) {
  const Machine machine = ReadMachine(root_);
  EXPECT_EQ(machine.memory_bytes, 0);
  EXPECT_EQ(machine.marketing_name, "");
  EXPECT_EQ(machine.boot_id.size(), 32u);
}

TEST_F(MachineTest, CoresAreThoseThatTheProcessMayUse) {
  EXPECT_THAT(*ChooseCpus("", {2, 3, 5}), ElementsAre(2, 3, 5));
  EXPECT_THAT(*ChooseCpus("5,2-3", {2, 3, 5}), ElementsAre(2, 3, 5));
  const auto outside = ChooseCpus("2,4", {2, 3, 5});
  EXPECT_THAT(std::string(outside.status().message()),
              HasSubstr("processor 4"));
  EXPECT_THAT(std::string(outside.status().message()), HasSubstr("2-3,5"));
  for (const char* bad : {"x", "3-", "-1", "2-1", ",", "99999999999"}) {
    EXPECT_FALSE(ChooseCpus(bad, {2, 3, 5}).ok()) << bad;
  }
}

TEST_F(MachineTest, TheIdIsTheSameEveryTimeAndDiffersByMachineAndCores) {
  Machine machine;
  machine.hostname = "Lab_7.example.org";
  machine.machine_id = "aaa";
  const std::string id = *StableDeviceId(machine, "0-3", root_);
  EXPECT_THAT(id, StartsWith("lab-7-"));
  EXPECT_EQ(*StableDeviceId(machine, "0-3", root_), id);
  EXPECT_NE(*StableDeviceId(machine, "0-1", root_), id);
  machine.machine_id = "bbb";
  EXPECT_NE(*StableDeviceId(machine, "0-3", root_), id);
}

TEST_F(MachineTest, AMachineWithoutAnIdKeepsARandomOne) {
  Machine machine;
  machine.hostname = "h";
  const std::string id = *StableDeviceId(machine, "0", root_);
  EXPECT_EQ(*StableDeviceId(machine, "0", root_), id);
  std::filesystem::remove(root_ + "/machine-id");
  EXPECT_NE(*StableDeviceId(machine, "0", root_), id);
  const auto nowhere = StableDeviceId(machine, "0", root_ + "/none");
  EXPECT_THAT(std::string(nowhere.status().message()),
              HasSubstr("/none/machine-id"));
}

TEST_F(MachineTest, RandomIdsDiffer) { EXPECT_NE(RandomId(), RandomId()); }

}  // namespace
}  // namespace regatta
