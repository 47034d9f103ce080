// SIGKILL at any point: whatever was acknowledged is there afterwards, once,
// and the log opens without repair.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/random.h"
#include "tests/storage/fault_vfs.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

constexpr int kThreads = 3;
constexpr int kBatch = 4;

// Appends for ever on several threads; writes each acknowledged id as a line to
// `acks`. A record fills a page, so that checkpoints come soon.
[[noreturn]] void AppendForEver(const std::string& path, int round, int acks,
                                int64_t kill_at) {
  const FaultVfs vfs;
  if (kill_at > 0) {
    FaultVfs::Arm({.action = FaultAction::kKill, .nth = kill_at});
  }
  auto log = OpenTuningLog(path, {.holder = "the child of a test"});
  if (!log.ok()) _exit(3);
  const WorkloadInfo workload = Matmul(8, 8, 8);
  if (!(*log)->PutWorkload(workload).ok()) _exit(4);
  const auto work = [&](int thread) {
    for (int i = 0;; ++i) {
      std::vector<v1::TrialResult> batch;
      std::string lines;
      for (int j = 0; j < kBatch; ++j) {
        const std::string id =
            absl::StrCat(round, "/", thread, "/", i * kBatch + j);
        batch.push_back(OkResult(id, workload, absl::StrCat("s", j),
                                 1 + (i * 7919 + j) % 5000));
        batch.back().set_detail(std::string(3500, 'x'));
        absl::StrAppend(&lines, id, "\n");
      }
      if (!(*log)->Append(batch, i).ok()) _exit(5);
      // Less than PIPE_BUF: written whole or not at all.
      if (write(acks, lines.data(), lines.size()) < 0) _exit(6);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  _exit(7);
}

// Runs a child until it kills itself at its `kill_at`th write or sync or, with
// kill_at 0, until it is killed after `lines` acknowledgements. Returns what it
// acknowledged.
std::vector<std::string> RunAndKill(const std::string& path, int round,
                                    int64_t kill_at, size_t lines) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    AppendForEver(path, round, ends[1], kill_at);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t size = read(ends[0], buffer, sizeof(buffer));
    if (size <= 0) break;
    text.append(buffer, size);
    if (kill_at == 0 && static_cast<size_t>(std::count(text.begin(), text.end(),
                                                       '\n')) >= lines) {
      kill(child, SIGKILL);
    }
  }
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      << "the child ended by itself with " << WEXITSTATUS(status);
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

TEST(SqliteKill, EveryAcknowledgedTrialSurvivesSigkillAtAnyPoint) {
  const int rounds = std::max(1, static_cast<int>(12 * TestScale()));
  std::cout << "REGATTA_TEST_SCALE " << TestScale() << ": " << rounds
            << " kills\n";
  const TempDir dir;
  const std::string path = dir.path() + "/log";
  const WorkloadInfo workload = Matmul(8, 8, 8);
  Random random(20240607);
  std::set<std::string> acked;
  for (int round = 0; round < rounds; ++round) {
    // Two of three at a chosen write or sync, some early enough to meet the
    // creation or recovery of the log; the third whenever the signal lands.
    const int64_t kill_at =
        round % 3 == 2 ? 0 : 1 + random.Below(round % 3 == 0 ? 150 : 4000);
    const size_t lines = 1 + random.Below(400);
    SCOPED_TRACE(
        absl::StrCat("round ", round, " kill_at ", kill_at, " lines ", lines));
    for (std::string& id : RunAndKill(path, round, kill_at, lines)) {
      acked.insert(std::move(id));
    }
    // The check at opening reads every page.
    auto log = OpenTuningLog(path);
    ASSERT_OK(log);
    const auto ids = TrialIds(AllRecords(**log, workload));
    const std::set<std::string> stored(ids.begin(), ids.end());
    EXPECT_EQ(stored.size(), ids.size());
    EXPECT_EQ(ids.size() % kBatch, 0u);
    for (const std::string& id : acked) {
      ASSERT_TRUE(stored.contains(id)) << id << " was acknowledged";
    }
    if (acked.empty()) continue;
    const std::string best = Describe(**(*log)->Best(KeyFor(workload)));
    ASSERT_OK((*log)->RebuildBest(nullptr));
    EXPECT_EQ(Describe(**(*log)->Best(KeyFor(workload))), best);
  }
  EXPECT_GT(acked.size(), 100u);
}

TEST(SqliteKill, AReaderSeesWhatAKilledServerLeftInTheWriteAheadLog) {
  const TempDir dir;
  const std::string path = dir.path() + "/log";
  const auto acked = RunAndKill(path, 0, 0, 20);
  const std::string file = ReadFile(path), wal = ReadFile(path + "-wal");
  ASSERT_FALSE(wal.empty());
  {
    const auto log = OpenTuningLog(path, {.read_only = true});
    ASSERT_OK(log);
    const auto ids = TrialIds(AllRecords(**log, Matmul(8, 8, 8)));
    for (const std::string& id : acked) {
      EXPECT_THAT(ids, ::testing::Contains(id));
    }
  }
  EXPECT_TRUE(ReadFile(path) == file);
  EXPECT_TRUE(ReadFile(path + "-wal") == wal);
}

}  // namespace
}  // namespace regatta::testing
