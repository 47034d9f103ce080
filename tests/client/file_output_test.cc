#include "client/cli/file_output.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/process.h"

namespace regatta::cli {
namespace {

using ::regatta::testing::ReadFile;
using ::regatta::testing::TempDir;
using ::regatta::testing::WriteFile;

int FilesIn(const std::string& dir) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(dir)) {
    ++count;
  }
  return count;
}

TEST(WriteFileAtomically, ReplacesWhatWasThere) {
  const TempDir dir;
  const std::string path = dir.path() + "/lib.so";
  WriteFile(path, "old");
  ASSERT_TRUE(WriteFileAtomically(path, "new bytes", true).ok());
  EXPECT_EQ(ReadFile(path), "new bytes");
  EXPECT_EQ(FilesIn(dir.path()), 1);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_NE(info.st_mode & S_IXUSR, 0u);
}

TEST(WriteFileAtomically, AFolderThatIsNotThereIsNamed) {
  const TempDir dir;
  const std::string path = dir.path() + "/none/k.h";
  const absl::Status status = WriteFileAtomically(path, "x", false);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find(path), absl::string_view::npos) << status;
  EXPECT_EQ(FilesIn(dir.path()), 0);
}

TEST(WriteFileAtomically, AFolderInThePlaceLeavesNothingBehind) {
  const TempDir dir;
  std::filesystem::create_directory(dir.path() + "/k.h");
  EXPECT_FALSE(WriteFileAtomically(dir.path() + "/k.h", "x", false).ok());
  EXPECT_EQ(FilesIn(dir.path()), 1);
  EXPECT_TRUE(std::filesystem::is_directory(dir.path() + "/k.h"));
}

// Exits with 7 when writing fails as promised, where files end at 1000 bytes.
[[noreturn]] void ExitAfterWriting(const std::string& path, size_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  limit.rlim_cur = limit.rlim_max = 1000;
  setrlimit(RLIMIT_FSIZE, &limit);
  const absl::Status status =
      WriteFileAtomically(path, std::string(bytes, 'x'), false);
  std::exit(absl::IsFailedPrecondition(status) ? 7 : 8);
}

TEST(WriteFileAtomically, AFullDiskLeavesNothingBehind) {
  // A limit on file sizes acts like one.
  const TempDir dir;
  const std::string path = dir.path() + "/lib.so";
  WriteFile(path, "old");
  EXPECT_EXIT(ExitAfterWriting(path, 5000), ::testing::ExitedWithCode(7), "");
  EXPECT_EQ(ReadFile(path), "old");
  EXPECT_EQ(FilesIn(dir.path()), 1);
}

TEST(StagedFile, AppearsOnlyWhenCommitted) {
  const TempDir dir;
  const std::string path = dir.path() + "/a";
  {
    auto file = StagedFile::Write(path, "bytes", false);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_EQ(FilesIn(dir.path()), 0);
  auto file = StagedFile::Write(path, "bytes", false);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(ReadFile(path), "bytes");
  EXPECT_EQ(FilesIn(dir.path()), 1);
}

}  // namespace
}  // namespace regatta::cli
