// Boards of another build hold sessions and get no work; they are upgraded one
// after the other, and nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const char kWorkload[] = "matmul(m=64,n=64,k=64)";

class RollingUpgrade : public ::testing::Test {
 protected:
  // Where an agent of another build finds its workers.
  void MakeOtherBuild() {
    const std::string folder = dir_.path() + "/other";
    fs::create_directory(folder);
    for (const char* name : {"regatta-spawner", "regatta-run-worker"}) {
      fs::copy_file(Program(name), folder + "/" + name);
    }
    fs::copy_file(Program("other-build/regatta-build-worker"),
                  folder + "/regatta-build-worker");
  }

  void Start(const std::string& id, const std::string& core, bool other_build) {
    std::vector<std::string> argv = {Program("regatta-agent"),
                                     "--tracker",
                                     fleet_.tracker(),
                                     "--id",
                                     id,
                                     "--cores",
                                     core,
                                     "--state",
                                     dir_.path() + "/" + id};
    if (other_build) {
      argv.insert(argv.end(), {"--worker-dir", dir_.path() + "/other"});
    }
    agents_[id] = std::make_unique<Process>(argv, Environment{});
  }

  Json Device(const std::string& id) {
    const Json listed = fleet_.Document({"devices"});
    for (const Json& device : listed["devices"]) {
      if (device["id"] == id) return device;
    }
    return nullptr;
  }

  bool AwaitBuild(const std::string& id, bool other_build) {
    const bool there = WaitFor(absl::Seconds(60), [&] {
      const Json device = Device(id);
      if (device.is_null() || device["presence"] != "online") return false;
      const std::string version = device.value("compiler_version", "");
      return version.starts_with("0123456789abcdef/") == other_build;
    });
    EXPECT_TRUE(there) << id << Device(id).dump() << fleet_.Logs();
    return there;
  }

  void Stop(const std::string& id) {
    agents_[id]->Signal(SIGTERM);
    EXPECT_EQ(agents_[id]->Wait(absl::Seconds(70)).exit_code, 0) << id;
  }

  // Replaces the board's agent by one of this build, as an operator does.
  void Upgrade(const std::string& id, const std::string& core) {
    EXPECT_EQ(
        fleet_.Run({"device", "drain", id, "--reason", "upgrade", "--wait"})
            .exit_code,
        0);
    Stop(id);
    Start(id, core, /*other_build=*/false);
    ASSERT_TRUE(AwaitBuild(id, /*other_build=*/false));
    EXPECT_EQ(fleet_.Run({"device", "resume", id}).exit_code, 0);
  }

  std::map<std::string, int> RecordsByDevice() {
    std::map<std::string, int> counts;
    std::set<std::string> trials;
    const Json listed = fleet_.Document({"records", kWorkload});
    for (const Json& record : listed["records"]) {
      ++counts[record["device"].get<std::string>()];
      EXPECT_TRUE(trials.insert(record["trial"].get<std::string>()).second);
      EXPECT_NE(record["outcome"], "agent_lost") << record.dump();
    }
    return counts;
  }

  Fleet fleet_{{"--no-agent"}};
  TempDir dir_;
  std::map<std::string, std::unique_ptr<Process>> agents_;
};

TEST_F(RollingUpgrade, BoardsOfAnotherBuildWaitAndAreUpgradedOneByOne) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE && cores.size() < 2; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cores.push_back(absl::StrCat(cpu));
  }
  if (cores.size() < 2) GTEST_SKIP() << "two boards need two processors";
  ASSERT_TRUE(WaitFor(absl::Seconds(20), [&] {
    return !fleet_.server().empty();
  })) << fleet_.Logs();
  MakeOtherBuild();
  // The fleet as it was, under a server and a tracker that are new.
  Start("b1", cores[0], /*other_build=*/true);
  Start("b2", cores[1], /*other_build=*/true);
  ASSERT_TRUE(AwaitBuild("b1", true) && AwaitBuild("b2", true));
  const std::string device_class = Device("b1")["device_class"];
  ASSERT_EQ(Device("b2")["device_class"], device_class);

  const Json job =
      fleet_.Document({"tune", kWorkload, "--device-class", device_class,
                       "--trials", "24", "--seed", "3", "--detach"});
  const std::string id = job["job"].dump();
  EXPECT_TRUE(WaitFor(absl::Seconds(20), [&] {
    return fleet_.Document({"jobs", id})
               .dump()
               .find("has 0123456789abcdef/") != std::string::npos;
  })) << fleet_.Document({"jobs", id}).dump();
  // They hold their sessions, and the doctor says what is the matter.
  EXPECT_EQ(Device("b1")["presence"], "online");
  EXPECT_TRUE(RecordsByDevice().empty());
  const ProcessResult doctor = fleet_.Run({"doctor", "--device", "b1"});
  EXPECT_EQ(doctor.exit_code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("fail  board, versions: "));
  EXPECT_THAT(doctor.out, HasSubstr("deploy/install-agent"));

  Upgrade("b1", cores[0]);
  EXPECT_TRUE(WaitFor(absl::Seconds(60), [&] {
    return fleet_.TrialsOf(job["job"]) >= 3;
  })) << fleet_.Document({"jobs", id}).dump();
  EXPECT_EQ(RecordsByDevice().count("b2"), 0u) << "an old build got work";
  Upgrade("b2", cores[1]);
  // The first is replaced again while it works: what it holds ends first.
  Upgrade("b1", cores[0]);

  EXPECT_TRUE(WaitFor(absl::Seconds(150), [&] {
    return fleet_.Document({"jobs", id})["state"] == "done";
  })) << fleet_.Document({"jobs", id}).dump();
  EXPECT_EQ(fleet_.TrialsOf(job["job"]), 24);
  const std::map<std::string, int> records = RecordsByDevice();
  EXPECT_GT(records.at("b1"), 0);
  EXPECT_GT(records.at("b2"), 0);
  EXPECT_EQ(fleet_.Document({"log", "check"})["whole"], true);
  EXPECT_EQ(fleet_.Run({"doctor", "--device", "b2"}).out.find("fail  "),
            std::string::npos);
  for (const auto& [name, agent] : agents_) Stop(name);
}

}  // namespace
}  // namespace regatta::testing
