#include "client/cli/file_output.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "storage/tuning_log.h"
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

TEST(CheckOutput, RefusesATuningLogAndWhatIsRead) {
  const TempDir dir;
  const std::string log = dir.path() + "/t.db";
  const std::string input = dir.path() + "/in";
  ASSERT_TRUE(OpenTuningLog(log).ok());
  WriteFile(input, "x");
  std::filesystem::create_symlink(input, dir.path() + "/alias");
  const auto refuses = [&](const std::string& name, const std::string& why) {
    const absl::Status status =
        CheckOutput(dir.path() + "/" + name, {"", input});
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << name << " " << status;
    EXPECT_NE(status.message().find(why), absl::string_view::npos) << status;
  };
  refuses("t.db", "is a tuning log");
  refuses("t.db-wal", "belongs to " + log + ", a tuning log");
  refuses("in", "itself");
  refuses("alias", "itself");
  EXPECT_TRUE(CheckOutput(dir.path() + "/new", {"", input}).ok());
  EXPECT_TRUE(CheckOutput(input, {"", log}).ok());
}

TEST(StagedFile, WhatKilledProcessesLeftGoesWithTheNextOne) {
  const TempDir dir;
  const std::string path = dir.path() + "/a";
  // A process that has been: its id is free again.
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  ASSERT_EQ(waitpid(dead, nullptr, 0), dead);
  const std::string stale = absl::StrCat(path, ".", dead, ".new");
  const std::string others[] = {absl::StrCat(path, ".", getppid(), ".new"),
                                path + ".x.new", path + ".new",
                                absl::StrCat(path, "b.", dead, ".new")};
  WriteFile(stale, "half");
  for (const std::string& other : others) WriteFile(other, "whole");
  ASSERT_TRUE(WriteFileAtomically(path, "bytes", false).ok());
  EXPECT_FALSE(std::filesystem::exists(stale));
  for (const std::string& other : others) {
    EXPECT_TRUE(std::filesystem::exists(other)) << other;
  }
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
