// Run workers that are kept: the same one again, until it has done its share,
// is too old, or does not answer.
#include "device_agent/measure/worker_pool.h"

#include <signal.h>

#include "base/clock.h"
#include "device_agent/measure/run_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

class WorkerPoolTest : public ::testing::Test {
 protected:
  WorkerPoolTest() {
    auto spawner = SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner");
    EXPECT_TRUE(spawner.ok()) << spawner.status();
    spawner_ = *std::move(spawner);
    options_.program = REGATTA_BIN_DIR "/regatta-run-worker";
    options_.memory_bytes = int64_t{1} << 30;
    options_.needs.max_tasks = 64;
    options_.needs.arguments = {"--cuda-driver",
                                REGATTA_LIB_DIR "/libregatta-cuda-sim.so"};
    prepare_.set_prepare_kind("cuda");
    prepare_.set_device("0");
    pool_ = std::make_unique<WorkerPool>(prepare_, spawner_, &clock_);
  }
  KeptWorker Take() {
    auto worker = pool_->Take(SpawnOf(options_), kStartMs);
    EXPECT_TRUE(worker.ok()) << worker.status();
    return *std::move(worker);
  }
  // Takes one and gives it back; which it was.
  pid_t UseOne() {
    KeptWorker worker = Take();
    const pid_t pid = worker.handle->pid();
    pool_->GiveBack(std::move(worker));
    return pid;
  }

  static constexpr int64_t kStartMs = 30'000;
  FakeClock clock_;
  std::shared_ptr<SpawnerClient> spawner_;
  RunWorkerOptions options_;
  v1::RunRequest prepare_;
  std::unique_ptr<WorkerPool> pool_;
};

TEST_F(WorkerPoolTest, AWorkerHasItsShareOfTrialsAndNoMore) {
  const pid_t first = UseOne();
  for (int i = 1; i < WorkerPool::kMaxTrials; ++i) {
    ASSERT_EQ(UseOne(), first) << i;
  }
  EXPECT_NE(UseOne(), first);
}

TEST_F(WorkerPoolTest, AnOldWorkerIsReplaced) {
  const pid_t first = UseOne();
  clock_.Advance(WorkerPool::kMaxAge - absl::Milliseconds(1));
  EXPECT_EQ(UseOne(), first);
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_NE(UseOne(), first);
}

TEST_F(WorkerPoolTest, OneThatDiedOrHangsWhileItWaitedIsReplaced) {
  KeptWorker worker = Take();
  const pid_t first = worker.handle->pid();
  worker.handle->Kill();
  ASSERT_TRUE(testing::WaitFor(absl::Seconds(10), [&] {
    return kill(first, 0) != 0;
  })) << "the spawner killed nothing";
  pool_->GiveBack(std::move(worker));
  const pid_t second = UseOne();
  EXPECT_NE(second, first);
  // It does not answer while it is stopped.
  kill(second, SIGSTOP);
  EXPECT_NE(UseOne(), second);
}

TEST_F(WorkerPoolTest, WorkersOfOtherOptionsAreOthers) {
  const pid_t first = UseOne();
  options_.memory_bytes *= 2;
  const pid_t second = UseOne();
  EXPECT_NE(second, first);
  EXPECT_EQ(UseOne(), second);
  options_.memory_bytes /= 2;
  EXPECT_EQ(UseOne(), first);
}

TEST_F(WorkerPoolTest, ADeviceThatDoesNotWorkIsSaid) {
  prepare_.set_device("7");
  WorkerPool pool(prepare_, spawner_, &clock_);
  const auto worker = pool.Take(SpawnOf(options_), kStartMs);
  EXPECT_EQ(worker.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(worker.status().message()),
              HasSubstr("CUDA device 7 is not there"));
}

}  // namespace
}  // namespace regatta
