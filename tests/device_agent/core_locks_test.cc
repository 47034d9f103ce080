#include "device_agent/measure/core_locks.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

class CoreLocksTest : public ::testing::Test {
 protected:
  CoreLocksTest() {
    folder_ = ::testing::TempDir() + "/core-locks-XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~CoreLocksTest() override { std::filesystem::remove_all(folder_); }

  static constexpr auto kBuild = CoreLocks::Use::kBuild;
  static constexpr auto kTiming = CoreLocks::Use::kTiming;
  // As another program would: a lock of its own on the same folder.
  absl::StatusOr<CoreLocks::Held> TryTake(const std::vector<int>& cpus,
                                          CoreLocks::Use use) {
    return CoreLocks(folder_).Take(cpus, use, [] { return true; });
  }
  bool Free(const std::vector<int>& cpus, CoreLocks::Use use) {
    const auto held = TryTake(cpus, use);
    if (!held.ok()) {
      EXPECT_TRUE(absl::IsCancelled(held.status())) << held.status();
    }
    return held.ok();
  }
  // Likewise once those who gave up waiting are gone: what they waited for may
  // come to them first, and they give it back at once. A lock that is never
  // given back hangs the test.
  bool GetsFree(const std::vector<int>& cpus, CoreLocks::Use use) {
    return CoreLocks(folder_).Take(cpus, use, [] { return false; }).ok();
  }

  std::string folder_;
};

TEST_F(CoreLocksTest, ATimedRunHasItsCoresForItself) {
  {
    const auto held = TryTake({0, 1}, kTiming);
    ASSERT_TRUE(held.ok()) << held.status();
    EXPECT_EQ(held->fds().size(), 2u);
    EXPECT_FALSE(Free({1}, kTiming));
    EXPECT_FALSE(Free({0}, kBuild));
    EXPECT_TRUE(Free({2}, kTiming));
  }
  EXPECT_TRUE(GetsFree({0, 1}, kTiming));
}

TEST_F(CoreLocksTest, BuildsShareACoreButNotWithATimedRun) {
  auto held = TryTake({0}, kBuild);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_TRUE(Free({0}, kBuild));
  EXPECT_FALSE(Free({0}, kTiming));
}

TEST_F(CoreLocksTest, WhoWaitsIsNotOvertakenByNewBuilds) {
  auto build = std::make_unique<CoreLocks::Held>(*TryTake({0}, kBuild));
  std::atomic<bool> asked = false;
  std::thread timed([&] {
    const auto held = CoreLocks(folder_).Take({0}, kTiming, [&] {
      asked = true;
      return false;
    });
    EXPECT_TRUE(held.ok()) << held.status();
  });
  while (!asked) sched_yield();
  EXPECT_FALSE(Free({0}, kBuild));
  build.reset();
  timed.join();
  EXPECT_TRUE(GetsFree({0}, kBuild));
}

TEST_F(CoreLocksTest, ADeadHolderHoldsNothing) {
  const pid_t child = fork();
  if (child == 0) {
    const auto held = TryTake({0}, kTiming);
    if (!held.ok()) _exit(1);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(Free({0}, kTiming));
}

TEST_F(CoreLocksTest, HoweverManyGiveUpOneThreadIsLeft) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                         std::filesystem::directory_iterator());
  };
  {
    const auto held = TryTake({0}, kTiming);
    ASSERT_TRUE(held.ok()) << held.status();
    const auto before = threads();
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(Free({0}, kTiming));
    EXPECT_LE(threads(), before + 1);
    // Another kind of lock is waited for apart.
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(Free({0}, kBuild));
    EXPECT_LE(threads(), before + 2);
  }
  EXPECT_TRUE(GetsFree({0}, kTiming));
  EXPECT_TRUE(GetsFree({0}, kBuild));
}

TEST_F(CoreLocksTest, StaysLockedWhileACopyOfItsDescriptorsIsHeld) {
  std::vector<UniqueFd> copies;  // as a spawner has them for its worker
  {
    const auto held = TryTake({0, 1}, kTiming);
    ASSERT_TRUE(held.ok()) << held.status();
    for (const int fd : held->fds()) copies.emplace_back(dup(fd));
  }
  EXPECT_FALSE(Free({0}, kTiming));
  EXPECT_FALSE(Free({1}, kBuild));
  copies.clear();
  EXPECT_TRUE(GetsFree({0, 1}, kTiming));
}

TEST_F(CoreLocksTest, ACleanedFolderIsNoticed) {
  const auto old = TryTake({0}, kTiming);
  ASSERT_TRUE(old.ok());
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::filesystem::remove(entry.path());
  }
  const auto held = TryTake({0}, kTiming);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_FALSE(Free({0}, kTiming));
}

TEST_F(CoreLocksTest, AFolderThatIsNotThereIsNamed) {
  const absl::Status status = CoreLocks(folder_ + "/none").Check({0});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(status.message()).find(folder_ + "/none"),
            std::string::npos);
}

}  // namespace
}  // namespace regatta
