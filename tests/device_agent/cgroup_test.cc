// Control groups: which of them this machine's memory limits are, and whose
// limit it was that something died of.
#include "device_agent/sandbox/cgroup.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device_agent/spawner/cgroup_places.h"
#include "device_agent/spawner/file_text.h"
#include "device_agent/spawner/spawner_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What the kernel would show, made of files.
class CgroupFilesTest : public ::testing::Test {
 protected:
  CgroupFilesTest() {
    std::string pattern = ::testing::TempDir() + "/cgroup-XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~CgroupFilesTest() override { std::filesystem::remove_all(root_); }
  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  std::string root_;
};

TEST_F(CgroupFilesTest, OnlyItsOwnLimitIsTheGroupsFault) {
  // The kernel counts every kill of a member, but "oom" only for its own limit.
  Put("/memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n");
  EXPECT_TRUE(OwnMemoryLimitKilled(root_, /*unified=*/true));
  Put("/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n");
  EXPECT_FALSE(OwnMemoryLimitKilled(root_, /*unified=*/true));
  // An allocation that was refused killed nobody.
  Put("/memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\n");
  EXPECT_FALSE(OwnMemoryLimitKilled(root_, /*unified=*/true));
}

TEST_F(CgroupFilesTest, ThePeakTellsWhereTheKernelDoesNot) {
  const auto killed = [&](const std::string& peak, const std::string& both) {
    Put("/memory.max_usage_in_bytes", peak);
    Put("/memory.memsw.max_usage_in_bytes", both);
    return OwnMemoryLimitKilled(root_, /*unified=*/false);
  };
  Put("/memory.limit_in_bytes", "67108864\n");
  Put("/memory.memsw.limit_in_bytes", "67108864\n");
  Put("/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  EXPECT_TRUE(killed("67108864\n", "67108864\n"));
  EXPECT_TRUE(killed("67076096\n", "60000000\n"));
  EXPECT_TRUE(killed("60000000\n", "67076096\n"));  // with swap
  EXPECT_FALSE(killed("60000000\n", "60000000\n"));
  Put("/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
  EXPECT_FALSE(killed("67108864\n", "67108864\n"));
}

TEST_F(CgroupFilesTest, PlacesAreItsGroupAndThoseAroundIt) {
  Put("/proc/self/cgroup", "4:memory,hugetlb:/pods/7\n0::/lab/agent\n");
  Put("/proc/self/mountinfo",
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
      "35 31 0:32 /pods /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  for (const char* group :
       {"memory", "memory/7", "unified", "unified/lab/agent"}) {
    Put(absl::StrCat("/sys/fs/cgroup/", group, "/cgroup.procs"), "");
  }
  const std::string mount = root_ + "/sys/fs/cgroup";
  // "lab" is not there.
  EXPECT_THAT(CgroupPlaces("", root_),
              ElementsAre(mount + "/unified/lab/agent", mount + "/unified"));
  // Below what a container sees of the hierarchy.
  EXPECT_THAT(CgroupPlaces("memory", root_),
              ElementsAre(mount + "/memory/7", mount + "/memory"));
  EXPECT_THAT(CgroupPlaces("pids", root_), IsEmpty());
}

// A group with a limit of memory, around this process and all that it starts
// while the object lives.
class LimitedGroup {
 public:
  // In the first of these hierarchies (CgroupPlaces) that it can be made in;
  // null where in none.
  static std::unique_ptr<LimitedGroup> Enter(
      const std::vector<const char*>& hierarchies, int64_t bytes) {
    for (const char* hierarchy : hierarchies) {
      const std::vector<std::string> places = CgroupPlaces(hierarchy);
      for (const std::string& place : places) {
        const std::string path = absl::StrCat(place, "/around-", getpid());
        if (mkdir(path.c_str(), 0755) != 0) continue;
        std::unique_ptr<LimitedGroup> group(new LimitedGroup(path, places[0]));
        const std::string limit = absl::StrCat(bytes);
        const bool limited = WriteText(path + "/memory.max", limit) ||
                             WriteText(path + "/memory.limit_in_bytes", limit);
        WriteText(path + "/memory.swap.max", "0");
        WriteText(path + "/memory.memsw.limit_in_bytes", limit);
        if (limited && WriteText(path + "/cgroup.procs", "0")) return group;
      }
    }
    return nullptr;
  }
  ~LimitedGroup() {
    WriteText(home_ + "/cgroup.procs", "0");
    EXPECT_EQ(rmdir(path_.c_str()), 0) << path_;
  }
  const std::string& path() const { return path_; }

 private:
  LimitedGroup(std::string path, std::string home)
      : path_(std::move(path)), home_(std::move(home)) {}
  const std::string path_, home_;
};

v1::Spawn WorkerThat(const std::string& does) {
  v1::Spawn spawn;
  spawn.set_program(REGATTA_BIN_DIR "/misbehaving_worker");
  spawn.add_arguments(does);
  spawn.set_role("run");
  spawn.set_wall_limit_ms(20'000);
  return spawn;
}

// As a service's group, in which nobody is but the agent and its spawner.
TEST(OwnGroupTest, WorkersStayInTheGroupThatTheAgentWasStartedIn) {
  const auto around = LimitedGroup::Enter({""}, int64_t{1} << 30);
  if (around == nullptr) {
    GTEST_SKIP() << "no group of version 2 with a limit of memory can be made "
                    "here";
  }
  {
    auto spawner = SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner");
    ASSERT_TRUE(spawner.ok()) << spawner.status();
    EXPECT_TRUE((*spawner)->Require({"cgroup_memory", "cgroup_pids"}).ok());
    auto worker = (*spawner)->Spawn(WorkerThat("hang"));
    ASSERT_TRUE(worker.ok()) << worker.status();
    const std::string name = std::filesystem::path(around->path()).filename();
    const std::string group =
        FileText(absl::StrCat("/proc/", (*worker)->pid(), "/cgroup"));
    EXPECT_THAT(group, HasSubstr(absl::StrCat("/", name, "/regatta-")));
    EXPECT_NE(CgroupPlaces("")[0], around->path()) << "no room for others";
  }
  EXPECT_EQ(CgroupPlaces("")[0], around->path()) << "not where it was before";
}

TEST(MemoryPressureTest, ALimitAroundTheWorkersIsNotTheWorkers) {
  const auto around = LimitedGroup::Enter({"memory", ""}, 256 << 20);
  if (around == nullptr) {
    GTEST_SKIP() << "no control group with a limit of memory can be made here";
  }
  auto spawner = SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner");
  ASSERT_TRUE(spawner.ok()) << spawner.status();
  if (!(*spawner)->Require({"cgroup_memory"}).ok()) {
    GTEST_SKIP() << "no cgroup_memory: " << (*spawner)->SandboxText();
  }
  v1::Spawn spawn = WorkerThat("grow");
  const auto ends = [&](int64_t limit) {
    spawn.set_memory_limit_bytes(limit);
    auto worker = (*spawner)->Spawn(spawn);
    EXPECT_TRUE(worker.ok()) << worker.status();
    auto exited = (*worker)->WaitExited(absl::Seconds(20));
    EXPECT_TRUE(exited.ok()) << exited.status();
    return *exited;
  };
  const v1::Exited pressed = ends(int64_t{1} << 30);
  EXPECT_EQ(pressed.reason(), v1::EXIT_REASON_SIGNALLED)
      << pressed.ShortDebugString();
  EXPECT_EQ(pressed.code(), SIGKILL);
  EXPECT_EQ(ends(64 << 20).reason(), v1::EXIT_REASON_MEMORY_LIMIT);
}

}  // namespace
}  // namespace regatta
