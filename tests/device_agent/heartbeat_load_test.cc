// The agent goes on while candidates use every core: weights of processes, and
// heartbeats beside workers that spin.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "device_agent/loop/agent_runtime.h"
#include "device_agent/spawner/file_text.h"
#include "device_agent/spawner/spawner_client.h"
#include "gtest/gtest.h"
#include "tests/device_agent/loop/fake_spool_storage.h"
#include "tests/support/idle_runner.h"
#include "tests/support/scale.h"

namespace regatta {
namespace {

std::shared_ptr<SpawnerClient> StartSpawner(
    const std::vector<std::string>& without = {}) {
  auto spawner =
      SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner", without);
  EXPECT_TRUE(spawner.ok()) << spawner.status();
  return spawner.ok() ? *std::move(spawner) : nullptr;
}

bool Has(const SpawnerClient& spawner, const std::string& feature) {
  return spawner.Require({feature}).ok();
}

std::unique_ptr<WorkerHandle> Spin(SpawnerClient& spawner,
                                   const std::string& role) {
  v1::Spawn spawn;
  spawn.set_program(REGATTA_BIN_DIR "/misbehaving_worker");
  spawn.add_arguments("spin");
  spawn.set_role(role);
  spawn.set_memory_limit_bytes(64 << 20);
  spawn.set_max_tasks(16);
  auto worker = spawner.Spawn(spawn);
  EXPECT_TRUE(worker.ok()) << worker.status();
  return worker.ok() ? *std::move(worker) : nullptr;
}

// The weight of a process's group among its siblings, 100 as everybody's; 0
// where it is not found.
int WeightOf(pid_t pid) {
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(
           FileText(absl::StrCat("/proc/", pid, "/cgroup")), '\n'))) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/cpu",
                              "/sys/fs/cgroup/cpu,cpuacct"}) {
      int weight = 0;
      const std::string folder = mount + parts[2];
      if (parts[1].empty() &&
          absl::SimpleAtoi(FirstLine(folder + "/cpu.weight"), &weight)) {
        return weight;
      }
      if (absl::StrContains(absl::StrCat(",", parts[1], ","), ",cpu,") &&
          absl::SimpleAtoi(FirstLine(folder + "/cpu.shares"), &weight)) {
        return weight * 100 / 1024;
      }
    }
  }
  return 0;
}

TEST(CpuWeightTest, TheAgentWeighsMoreThanACandidateAndThatMoreThanABuild) {
  const int before = WeightOf(getpid());
  {
    const std::shared_ptr<SpawnerClient> spawner = StartSpawner();
    ASSERT_NE(spawner, nullptr);
    if (!Has(*spawner, "cpu_weight")) {
      GTEST_SKIP() << "no control groups with weights here: "
                   << spawner->SandboxText();
    }
    EXPECT_FALSE(Has(*spawner, "nice"));
    const auto run = Spin(*spawner, "run");
    const auto build = Spin(*spawner, "build");
    ASSERT_TRUE(run != nullptr && build != nullptr);
    EXPECT_EQ(WeightOf(getpid()), 10'000);
    EXPECT_EQ(WeightOf(spawner->pid()), 10'000);
    EXPECT_EQ(WeightOf(run->pid()), 400);
    EXPECT_EQ(WeightOf(build->pid()), 100);
  }
  EXPECT_EQ(WeightOf(getpid()), before) << "not where it was before";
}

// Where this process is in the hierarchies of processors.
std::vector<std::string> CpuPlaces() {
  std::vector<std::string> places;
  for (const std::string& line : std::vector<std::string>(
           absl::StrSplit(FileText("/proc/self/cgroup"), '\n'))) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() == 3 &&
        (parts[1].empty() ||
         absl::StrContains(absl::StrCat(",", parts[1], ","), ",cpu,"))) {
      places.push_back(parts[2]);
    }
  }
  return places;
}

TEST(CpuWeightTest, ASpawnerTakesTheAgentOutOfTheGroupOfADeadOne) {
  const std::vector<std::string> home = CpuPlaces();
  std::shared_ptr<SpawnerClient> first = StartSpawner();
  ASSERT_NE(first, nullptr);
  if (!Has(*first, "cpu_weight")) {
    GTEST_SKIP() << "no control groups with weights here: "
                 << first->SandboxText();
  }
  const std::string dead = absl::StrCat(first->pid());
  ASSERT_NE(CpuPlaces(), home);
  kill(first->pid(), SIGKILL);
  first.reset();
  EXPECT_EQ(WeightOf(getpid()), 10'000) << "nobody was there to put it back";
  {
    const std::shared_ptr<SpawnerClient> second = StartSpawner();
    ASSERT_NE(second, nullptr);
    ASSERT_TRUE(Has(*second, "cpu_weight"));
    EXPECT_EQ(WeightOf(getpid()), 10'000);
    for (const std::string& place : CpuPlaces()) {
      EXPECT_FALSE(absl::StrContains(place, dead)) << place;
      for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/cpu",
                                "/sys/fs/cgroup/cpu,cpuacct"}) {
        const std::string parent = mount + place.substr(0, place.rfind('/'));
        EXPECT_NE(
            access(absl::StrCat(parent, "/regatta-", dead, "-agent").c_str(),
                   F_OK),
            0)
            << parent << " still has the dead one's";
      }
    }
  }
  EXPECT_EQ(CpuPlaces(), home);
}

TEST(CpuWeightTest, WithoutControlGroupsBuildsAreNiced) {
  const std::shared_ptr<SpawnerClient> spawner = StartSpawner({"cpu_weight"});
  ASSERT_NE(spawner, nullptr);
  EXPECT_TRUE(Has(*spawner, "nice"));
  EXPECT_FALSE(Has(*spawner, "cpu_weight"));
  const int own = getpriority(PRIO_PROCESS, 0);
  const auto run = Spin(*spawner, "run");
  const auto build = Spin(*spawner, "build");
  ASSERT_TRUE(run != nullptr && build != nullptr);
  EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(run->pid())), own);
  EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(build->pid())), 10);
}

// A tracker that acknowledges at once and notes when heartbeats come.
class CountingConnection : public TrackerConnection {
 public:
  void Open(Callbacks callbacks) override { callbacks_ = std::move(callbacks); }
  void Send(v1::AgentMessage message) override {
    v1::TrackerMessage answer;
    if (message.has_hello()) {
      answer.mutable_welcome()->set_tracker_epoch(1);
      answer.mutable_welcome()->set_heartbeat_ms(kHeartbeatMs);
      answer.mutable_welcome()->set_lease_ms(60'000);
    } else if (message.has_heartbeat()) {
      std::lock_guard lock(mutex_);
      const SteadyTime now = RealClock().Steady();
      if (heartbeats_++ > 0) longest_ = std::max(longest_, now - last_);
      last_ = now;
      answer.mutable_heartbeat_ack()->set_sequence(
          message.heartbeat().sequence());
    } else {
      return;
    }
    callbacks_.on_message(answer);
  }
  void Close(absl::Duration) override {}

  static constexpr int64_t kHeartbeatMs = 500;
  std::mutex mutex_;
  int heartbeats_ = 0;
  SteadyTime last_;
  absl::Duration longest_;  // between two heartbeats

 private:
  Callbacks callbacks_;
};

class HeartbeatLoadTest
    : public ::testing::TestWithParam<std::vector<std::string>> {};

// 120 s at REGATTA_TEST_SCALE=30; the workers are eight to a core.
TEST_P(HeartbeatLoadTest,
       HeartbeatsAreAtMostTwoSecondsLateWhenAllCoresAreBusy) {
  const std::shared_ptr<SpawnerClient> spawner = StartSpawner(GetParam());
  ASSERT_NE(spawner, nullptr);
  CountingConnection connection;
  IdleRunner runner;
  FakeDisk disk;
  auto spool =
      Spool::Open(std::make_unique<FakeSpoolStorage>(&disk), SpoolLimits{});
  ASSERT_TRUE(spool.ok()) << spool.status();
  AgentLoop::Options options;
  options.hello.set_agent_id("board");
  AgentRuntime runtime(options, &RealClock(), Random(1), *std::move(spool),
                       &connection);
  runtime.Start(&runner);
  std::vector<std::unique_ptr<WorkerHandle>> workers;
  for (unsigned i = 0; i < 8 * std::thread::hardware_concurrency(); ++i) {
    workers.push_back(Spin(*spawner, "run"));
    ASSERT_NE(workers.back(), nullptr);
  }
  const int seconds = Scaled(4);
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  workers.clear();
  runtime.Stop();
  std::lock_guard lock(connection.mutex_);
  std::printf(
      "%s: %d heartbeats in %d s beside %u spinning workers, the "
      "longest gap %.3f s\n",
      Has(*spawner, "cpu_weight") ? "cpu_weight" : "nice",
      connection.heartbeats_, seconds, 8 * std::thread::hardware_concurrency(),
      absl::ToDoubleSeconds(connection.longest_));
  EXPECT_GE(connection.heartbeats_, 2);
  EXPECT_LE(connection.longest_,
            absl::Milliseconds(CountingConnection::kHeartbeatMs * 1.1) +
                absl::Seconds(2));
}

INSTANTIATE_TEST_SUITE_P(Boards, HeartbeatLoadTest,
                         ::testing::Values(std::vector<std::string>{},
                                           std::vector<std::string>{
                                               "cpu_weight"}),
                         [](const auto& info) {
                           return info.param.empty()
                                      ? std::string("with_all_there_is")
                                      : std::string("without_weights");
                         });

}  // namespace
}  // namespace regatta
