#include "device_agent/loop/spool_storage.h"

#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace regatta {
namespace {

class SpoolStorageTest : public ::testing::Test {
 protected:
  SpoolStorageTest() {
    std::string pattern = ::testing::TempDir() + "/spool-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/spool";
  }
  ~SpoolStorageTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_, path_;
};

TEST_F(SpoolStorageTest, ARewriteThatFindsNoRoomLeavesNothingBehind) {
  auto storage = OpenSpoolFile(path_);
  ASSERT_TRUE(storage.ok()) << storage.status();
  const std::string content(100'000, 'x');
  ASSERT_TRUE((*storage)->Append(content).ok());
  // A file of more than 50,000 bytes is refused, as by a full disk.
  struct rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit small = {50'000, limit.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = (*storage)->Keep("head", {{0, 100'000}});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
  // The old file is still good, and one that a killed agent left is removed.
  EXPECT_EQ(*(*storage)->Read(0, 100'000), content);
  std::ofstream(path_ + ".new") << content;
  storage->reset();
  ASSERT_TRUE(OpenSpoolFile(path_).ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

}  // namespace
}  // namespace regatta
