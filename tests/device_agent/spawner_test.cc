// The spawner with real processes, on this machine's best sandbox and on what
// poorer machines have.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "device_agent/spawner/process_tree.h"
#include "device_agent/spawner/spawner_client.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

struct Poorness {
  std::string name;
  std::vector<std::string> without;
};

class SpawnerTest : public ::testing::TestWithParam<Poorness> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::shared_ptr<SpawnerClient>> spawner =
        SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner",
                             GetParam().without);
    ASSERT_TRUE(spawner.ok()) << spawner.status();
    spawner_ = *std::move(spawner);
  }
  void TearDown() override {
    if (spawner_ == nullptr) return;
    EXPECT_TRUE(ProcessTree::Read().Descendants(spawner_->pid()).empty())
        << "something is left below the spawner";
  }

  v1::Spawn Command(const std::vector<std::string>& words) {
    v1::Spawn spawn;
    spawn.set_program(REGATTA_BIN_DIR "/misbehaving_worker");
    for (const std::string& word : words) spawn.add_arguments(word);
    spawn.set_role("run");
    spawn.set_wall_limit_ms(20'000);
    spawn.set_memory_limit_bytes(64 << 20);
    spawn.set_max_tasks(16);
    return spawn;
  }
  v1::Exited RunToEnd(const v1::Spawn& spawn) {
    auto worker = spawner_->Spawn(spawn);
    EXPECT_TRUE(worker.ok()) << worker.status();
    if (!worker.ok()) return {};
    auto exited = (*worker)->WaitExited(kPatience);
    EXPECT_TRUE(exited.ok()) << exited.status();
    if (!exited.ok()) return {};
    EXPECT_FALSE(exited->leftovers());
    return *exited;
  }
  bool Has(const std::string& feature) {
    const std::vector<std::string>& all = spawner_->sandbox();
    return std::count(all.begin(), all.end(), feature) > 0;
  }

  std::shared_ptr<SpawnerClient> spawner_;
};

TEST_P(SpawnerTest, ReportsTheExitCode) {
  const v1::Exited exited = RunToEnd(Command({"exit", "7"}));
  EXPECT_EQ(exited.reason(), v1::EXIT_REASON_EXITED);
  EXPECT_EQ(exited.code(), 7);
}

TEST_P(SpawnerTest, ReportsTheSignal) {
  const v1::Exited exited = RunToEnd(Command({"segv"}));
  EXPECT_EQ(exited.reason(), v1::EXIT_REASON_SIGNALLED);
  EXPECT_EQ(exited.code(), SIGSEGV);
}

TEST_P(SpawnerTest, KillsAtTheWallLimit) {
  v1::Spawn spawn = Command({"hang"});
  spawn.set_wall_limit_ms(200);
  EXPECT_EQ(RunToEnd(spawn).reason(), v1::EXIT_REASON_WALL_LIMIT);
}

// Two spin on one processor: the one that is limited gets half of it.
TEST_P(SpawnerTest, TimeSpentWaitingForAProcessorDoesNotCount) {
  v1::Spawn spawn = Command({"spin"});
  spawn.set_cpu_list("0");
  auto other = spawner_->Spawn(spawn);
  ASSERT_TRUE(other.ok()) << other.status();
  spawn.set_wall_limit_ms(200);
  const SteadyTime start = RealClock().Steady();
  const v1::Exited exited = RunToEnd(spawn);
  const absl::Duration took = RealClock().Steady() - start;
  EXPECT_TRUE(exited.reason() == v1::EXIT_REASON_WALL_LIMIT ||
              exited.reason() == v1::EXIT_REASON_STARVED);
  EXPECT_GT(exited.starved_ns(), 0);
  EXPECT_GE(took, absl::Milliseconds(200) +
                      std::min(absl::Nanoseconds(exited.starved_ns()),
                               absl::Milliseconds(1400)));
  (*other)->Kill();
  EXPECT_TRUE((*other)->WaitExited(kPatience).ok());
}

TEST_P(SpawnerTest, KillsOnRequest) {
  auto worker = spawner_->Spawn(Command({"hang"}));
  ASSERT_TRUE(worker.ok()) << worker.status();
  (*worker)->Kill();
  auto exited = (*worker)->WaitExited(kPatience);
  ASSERT_TRUE(exited.ok()) << exited.status();
  EXPECT_EQ(exited->reason(), v1::EXIT_REASON_KILLED_ON_REQUEST);
}

TEST_P(SpawnerTest, StopsUnboundedMemory) {
  const v1::Exited exited = RunToEnd(Command({"grow"}));
  EXPECT_EQ(exited.reason(), v1::EXIT_REASON_MEMORY_LIMIT);
  EXPECT_GT(exited.peak_memory_bytes(), 32 << 20);
}

TEST_P(SpawnerTest, StopsAForkBomb) {
  v1::Spawn spawn = Command({"bomb"});
  spawn.set_wall_limit_ms(300);
  const v1::Exited exited = RunToEnd(spawn);
  // Where the kernel refuses forks quietly, the wall limit ends it.
  EXPECT_TRUE(exited.reason() == v1::EXIT_REASON_SANDBOX ||
              exited.reason() == v1::EXIT_REASON_WALL_LIMIT)
      << exited.ShortDebugString();
  if (Has("cgroup_pids")) {
    EXPECT_EQ(exited.reason(), v1::EXIT_REASON_SANDBOX);
    EXPECT_EQ(exited.stderr_tail(), "more than 16 processes and threads");
  }
}

TEST_P(SpawnerTest, KillsWhatLeftTheSessionOfAnEndedWorker) {
  const v1::Exited exited = RunToEnd(Command({"escape"}));
  EXPECT_EQ(exited.reason(), v1::EXIT_REASON_EXITED);
}

TEST_P(SpawnerTest, KillsWhatLeftTheSessionOfAKilledWorker) {
  v1::Spawn spawn = Command({"escape_and_hang"});
  spawn.set_wall_limit_ms(200);
  EXPECT_EQ(RunToEnd(spawn).reason(), v1::EXIT_REASON_WALL_LIMIT);
}

TEST_P(SpawnerTest, BytesThatAreNoTextEndNoMoreThanTheirWorker) {
  const v1::Exited exited = RunToEnd(Command({"bytes"}));
  EXPECT_EQ(exited.reason(), v1::EXIT_REASON_SIGNALLED);
  EXPECT_EQ(exited.stderr_tail(), "???? \xe2\x82\xac ?\n");
  EXPECT_EQ(RunToEnd(Command({"exit", "7"})).code(), 7);
}

// 6001 bytes, whose last 4096 begin within a character.
TEST_P(SpawnerTest, TheEndOfTheErrorsBeginsWithACharacter) {
  const std::string tail = RunToEnd(Command({"accents"})).stderr_tail();
  EXPECT_EQ(tail.size(), 4095u);
  EXPECT_EQ(tail.substr(0, 2), "\xc3\xa9");
}

TEST(ReadSpawnEventTest, AFrameThatCannotBeParsedEndsItsWorker) {
  // Request 7; Exited {worker 5, code 3, a tail of one byte that is no text}.
  v1::SpawnEvent event =
      ReadSpawnEvent("\x08\x07\x1a\x07\x08\x05\x18\x03\x32\x01\xff");
  EXPECT_EQ(event.request_id(), 7);
  ASSERT_TRUE(event.has_exited());
  EXPECT_EQ(event.exited().worker(), 5);
  EXPECT_EQ(event.exited().reason(), v1::EXIT_REASON_UNSPECIFIED);
  EXPECT_EQ(event.exited().code(), 0);
  // Request 7; an error of one such byte.
  event = ReadSpawnEvent("\x08\x07\x22\x01\xff");
  EXPECT_EQ(event.request_id(), 7);
  EXPECT_EQ(event.error(), "the spawner's answer cannot be read");
  EXPECT_EQ(ReadSpawnEvent("\xff").request_id(), 0);
}

TEST_P(SpawnerTest, KeepsTheEndOfAFloodOfErrors) {
  const v1::Exited exited = RunToEnd(Command({"flood"}));
  EXPECT_EQ(exited.stderr_tail().size(), 4096u);
  EXPECT_EQ(exited.stderr_tail().substr(4096 - 8), "the end\n");
}

TEST_P(SpawnerTest, RefusesWhatItsFeaturesPromise) {
  setenv("REGATTA_TEST_SECRET", "1", 1);
  const v1::Exited exited = RunToEnd(Command({"try"}));
  const auto refused = [&](const std::string& what) {
    return exited.stderr_tail().find(what + "=refused") != std::string::npos;
  };
  EXPECT_TRUE(refused("root")) << exited.stderr_tail();
  EXPECT_TRUE(refused("privileges"));
  EXPECT_TRUE(refused("signal") || !Has("uid"));
  EXPECT_TRUE(refused("agent_variable"));
  if (Has("seccomp")) EXPECT_TRUE(refused("socket"));
  if (Has("landlock")) EXPECT_TRUE(refused("home"));
  if (Has("landlock") || Has("mountns")) EXPECT_TRUE(refused("write"));
}

TEST_P(SpawnerTest, AScratchFolderIsTheWorkersAndGoneWithIt) {
  v1::Spawn spawn = Command({"scratch", "3"});
  spawn.set_scratch_bytes(8 << 20);
  spawn.add_environment("EXTRA=said");
  const std::vector<std::string> words = absl::StrSplit(
      absl::StripAsciiWhitespace(RunToEnd(spawn).stderr_tail()), ' ');
  ASSERT_EQ(words.size(), 3u);
  EXPECT_NE(words[0], "/");
  EXPECT_EQ(words[1], "3");
  EXPECT_EQ(words[2], "said");
  EXPECT_NE(access(words[0].c_str(), F_OK), 0) << words[0] << " is left";
  // The next one has another, and one that asked for none has none.
  const std::string next = RunToEnd(spawn).stderr_tail();
  EXPECT_FALSE(absl::StartsWith(next, words[0] + " ")) << next;
  EXPECT_EQ(RunToEnd(Command({"scratch", "1"})).stderr_tail(), "/ 0 -\n");
}

TEST_P(SpawnerTest, AScratchFolderOfMemoryHasALimit) {
  if (!Has("mountns")) GTEST_SKIP() << "no mountns: it is a folder on disk";
  v1::Spawn spawn = Command({"scratch", "20"});
  spawn.set_scratch_bytes(8 << 20);
  const std::vector<std::string> words =
      absl::StrSplit(RunToEnd(spawn).stderr_tail(), ' ');
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[1], "8");
}

TEST_P(SpawnerTest, OtherWorkersGoOnWhileOneIsKilled) {
  auto echo = spawner_->Spawn(Command({"echo"}));
  ASSERT_TRUE(echo.ok()) << echo.status();
  RunToEnd(Command({"escape"}));
  char byte = 'x';
  ASSERT_EQ(write((*echo)->channel().fd(), &byte, 1), 1);
  ASSERT_EQ(read((*echo)->channel().fd(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  (*echo)->Kill();
  EXPECT_TRUE((*echo)->WaitExited(kPatience).ok());
}

TEST_P(SpawnerTest, HoldsTheLocksOfAsManyProcessorsAsItSays) {
  std::vector<int> held(SpawnerClient::kMaxHeld, STDIN_FILENO);
  auto worker = spawner_->Spawn(Command({"exit", "7"}), held);
  ASSERT_TRUE(worker.ok()) << worker.status();
  auto exited = (*worker)->WaitExited(kPatience);
  ASSERT_TRUE(exited.ok()) << exited.status();
  EXPECT_EQ(exited->code(), 7);
  held.push_back(STDIN_FILENO);
  EXPECT_EQ(spawner_->Spawn(Command({"exit", "7"}), held).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// A worker that outlives its killing and a file that is locked for it. A tracer
// that waits for the exit keeps a killed process, as a driver that hangs would.
class OutlivingTest : public SpawnerTest {
 protected:
  void SetUp() override {
    SpawnerTest::SetUp();
    std::string path = ::testing::TempDir() + "/held-XXXXXX";
    UniqueFd held(mkstemp(path.data()));
    ASSERT_TRUE(held.valid());
    other_.Reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    unlink(path.c_str());
    ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
    const int fd = held.get();
    auto worker = spawner_->Spawn(Command({"hang"}), {&fd, 1});
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
    pid_ = worker_->pid();
    if (ptrace(PTRACE_SEIZE, pid_, nullptr, PTRACE_O_TRACEEXIT) != 0) {
      const std::string reason = strerror(errno);
      worker_->Kill();
      EXPECT_TRUE(worker_->WaitExited(kPatience).ok());
      GTEST_SKIP() << "this process may not trace a worker: " << reason;
    }
  }
  // Once it was killed: waits for it to stand at its end.
  void AwaitStuck() {
    int status = 0;
    ASSERT_EQ(waitpid(pid_, &status, __WALL), pid_);
    ASSERT_EQ(status >> 8, SIGTRAP | (PTRACE_EVENT_EXIT << 8));
  }
  bool Locked() const { return flock(other_.get(), LOCK_EX | LOCK_NB) != 0; }
  // It goes, and with it the lock: waits for that.
  void LetGo() {
    ASSERT_EQ(ptrace(PTRACE_DETACH, pid_, nullptr, nullptr), 0);
    EXPECT_EQ(flock(other_.get(), LOCK_EX), 0);
  }

  UniqueFd other_;  // the locked file
  std::unique_ptr<WorkerHandle> worker_;
  pid_t pid_ = 0;
};

TEST_P(OutlivingTest, KeepsItsLocksAndIsNobodyElses) {
  worker_->Kill();
  AwaitStuck();
  const auto exited = worker_->WaitExited(kPatience);
  ASSERT_TRUE(exited.ok()) << exited.status();
  EXPECT_TRUE(exited->leftovers());
  EXPECT_TRUE(Locked());
  // Reported without leftovers, although something is left below the spawner.
  EXPECT_EQ(RunToEnd(Command({"exit", "7"})).code(), 7);
  EXPECT_EQ(RunToEnd(Command({"escape"})).reason(), v1::EXIT_REASON_EXITED);
  EXPECT_TRUE(Locked());
  LetGo();
}

TEST_P(OutlivingTest, KeepsItsLocksWhenTheAgentGoes) {
  const pid_t spawner = spawner_->pid();
  worker_.reset();
  // Its end does not wait for the worker's.
  spawner_.reset();
  AwaitStuck();
  EXPECT_TRUE(Locked());
  EXPECT_NE(ProcessTree::Read().Find(spawner), nullptr);
  LetGo();
  EXPECT_EQ(waitpid(spawner, nullptr, 0), spawner);
}

TEST_P(SpawnerTest, SaysWhichProgramIsMissing) {
  v1::Spawn spawn = Command({});
  spawn.set_program("/no/such/worker");
  auto worker = spawner_->Spawn(spawn);
  ASSERT_FALSE(worker.ok());
  EXPECT_NE(worker.status().message().find("/no/such/worker"),
            absl::string_view::npos);
  EXPECT_EQ(RunToEnd(Command({"exit", "0"})).code(), 0);
}

TEST_P(SpawnerTest, RefusesAProcessorThatIsNotThere) {
  v1::Spawn spawn = Command({"exit", "0"});
  spawn.set_cpu_list("1023");
  auto worker = spawner_->Spawn(spawn);
  ASSERT_FALSE(worker.ok());
  EXPECT_NE(worker.status().message().find("CPUs 1023"),
            absl::string_view::npos);
}

TEST_P(SpawnerTest, NamesRequiredFeaturesThatAreMissing) {
  EXPECT_TRUE(spawner_->Require({"rlimits"}).ok());
  const absl::Status status = spawner_->Require({"rlimits", "moat"});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("moat"), absl::string_view::npos);
}

TEST_P(SpawnerTest, WorkersDieWithTheSpawnerEvenWhenItIsKilled) {
  auto worker = spawner_->Spawn(Command({"hang"}));
  ASSERT_TRUE(worker.ok()) << worker.status();
  kill(spawner_->pid(), SIGKILL);
  // The worker's end of the channel closes when it dies.
  absl::StatusOr<FrameChannel::Frame> frame =
      (*worker)->channel().Receive(absl::ToInt64Milliseconds(kPatience));
  EXPECT_EQ(frame.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ((*worker)->WaitExited(kPatience).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(spawner_->Spawn(Command({"hang"})).status().code(),
            absl::StatusCode::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(
    Machines, SpawnerTest,
    ::testing::Values(Poorness{"best", {}},
                      Poorness{"without_cgroups", {"cgroup"}},
                      Poorness{"with_rlimits_only",
                               {"cgroup", "seccomp", "landlock", "mountns",
                                "netns", "ipcns"}}),
    [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Machines, OutlivingTest,
                         ::testing::Values(Poorness{"best", {}},
                                           Poorness{"without_cgroups",
                                                    {"cgroup"}}),
                         [](const auto& info) { return info.param.name; });

// One that stands still is noticed when it is asked for the next worker.
TEST(StoppedSpawnerTest, IsKilledAndTakesItsWorkersAlong) {
  auto spawner =
      SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner", {}, {},
                           /*answers_within=*/absl::Milliseconds(300));
  ASSERT_TRUE(spawner.ok()) << spawner.status();
  v1::Spawn spawn;
  spawn.set_program(REGATTA_BIN_DIR "/misbehaving_worker");
  spawn.add_arguments("hang");
  spawn.set_role("run");
  auto worker = (*spawner)->Spawn(spawn);
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_EQ(kill((*spawner)->pid(), SIGSTOP), 0);
  const SteadyTime start = RealClock().Steady();
  EXPECT_EQ((*spawner)->Spawn(spawn).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_LT(RealClock().Steady() - start, absl::Seconds(5));
  EXPECT_FALSE((*spawner)->alive());
  // The worker's end of the channel closes when it dies.
  EXPECT_EQ((*worker)->channel().Receive(2'000).status().code(),
            absl::StatusCode::kOutOfRange);
}

// The agent is killed: the spawner sees the end of its socket and takes the
// workers along, those included that left their session.
// An agent is killed while its spawner has a worker; `stopped`: and stands
// still.
void ExpectNothingOutlivesAKilledAgent(bool stopped) {
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  const pid_t agent = fork();
  if (agent == 0) {
    auto spawner = SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner");
    v1::Spawn spawn;
    spawn.set_program(REGATTA_BIN_DIR "/misbehaving_worker");
    spawn.add_arguments("escape_and_hang");
    spawn.set_role("run");
    auto worker = (*spawner)->Spawn(spawn);
    const pid_t pid = (*spawner)->pid();
    if (!worker.ok() || write(report[1], &pid, sizeof(pid)) < 0) _exit(1);
    for (;;) pause();
  }
  pid_t spawner = 0;
  ASSERT_EQ(read(report[0], &spawner, sizeof(spawner)),
            static_cast<ssize_t>(sizeof(spawner)));
  std::vector<pid_t> all = {spawner};
  for (const ProcessInfo& process : ProcessTree::Read().Descendants(spawner)) {
    all.push_back(process.pid);
  }
  ASSERT_GE(all.size(), 2u);
  if (stopped) ASSERT_EQ(kill(spawner, SIGSTOP), 0);
  const SteadyTime killed = RealClock().Steady();
  kill(agent, SIGKILL);
  waitpid(agent, nullptr, 0);
  const auto any_alive = [&] {
    const ProcessTree tree = ProcessTree::Read();
    return std::any_of(all.begin(), all.end(),
                       [&](pid_t pid) { return tree.Find(pid) != nullptr; });
  };
  while (any_alive() && RealClock().Steady() - killed < absl::Seconds(2)) {
    sched_yield();
  }
  EXPECT_FALSE(any_alive());
}

TEST(SpawnerDeathTest, NothingOutlivesAKilledAgent) {
  ExpectNothingOutlivesAKilledAgent(/*stopped=*/false);
}

TEST(SpawnerDeathTest, NorWhenTheSpawnerStoodStill) {
  ExpectNothingOutlivesAKilledAgent(/*stopped=*/true);
}

}  // namespace
}  // namespace regatta
