#include "device_agent/sandbox/scratch_folder.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace regatta {
namespace {

class ScratchFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    parent_ = ::testing::TempDir() + "/scratch-XXXXXX";
    ASSERT_NE(mkdtemp(parent_.data()), nullptr);
    ASSERT_EQ(setenv("TMPDIR", parent_.c_str(), 1), 0);
  }
  void TearDown() override {
    unsetenv("TMPDIR");
    std::filesystem::remove_all(parent_);
  }
  std::string parent_;
};

TEST_F(ScratchFolderTest, ThoseOfAKilledSpawnerAreRemovedAndNoOthers) {
  int path[2];
  ASSERT_EQ(pipe(path), 0);
  const pid_t spawner = fork();
  if (spawner == 0) {
    const auto folder = ScratchFolder::Create(std::nullopt, 1 << 20);
    if (!folder.ok()) _exit(1);
    const std::string text = (*folder)->path();
    if (write(path[1], text.data(), text.size()) < 0) _exit(1);
    for (;;) pause();
  }
  close(path[1]);
  char text[512];
  const ssize_t got = read(path[0], text, sizeof(text));
  close(path[0]);
  const std::string left(text, got > 0 ? got : 0);
  const auto own = ScratchFolder::Create(std::nullopt, 1 << 20);
  const std::string other = parent_ + "/somebody-elses";
  std::filesystem::create_directory(other);

  ScratchFolder::RemoveStale({geteuid()});
  EXPECT_TRUE(std::filesystem::exists(left)) << "its spawner lives";
  kill(spawner, SIGKILL);
  ASSERT_EQ(waitpid(spawner, nullptr, 0), spawner);
  ScratchFolder::RemoveStale({geteuid() + 1});
  EXPECT_TRUE(std::filesystem::exists(left)) << "another user's";
  ScratchFolder::RemoveStale({geteuid()});
  EXPECT_FALSE(std::filesystem::exists(left));
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_TRUE(std::filesystem::exists((*own)->path()));
  EXPECT_TRUE(std::filesystem::exists(other));
}

}  // namespace
}  // namespace regatta
