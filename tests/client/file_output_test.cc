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
  ASSERT_TRUE(WriteFileAtomically(path, "new bytes", FileUse::kProgram).ok());
  EXPECT_EQ(ReadFile(path), "new bytes");
  EXPECT_EQ(FilesIn(dir.path()), 1);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_NE(info.st_mode & S_IXUSR, 0u);
}

TEST(WriteFileAtomically, AFolderThatIsNotThereIsNamed) {
  const TempDir dir;
  const std::string path = dir.path() + "/none/k.h";
  const absl::Status status = WriteFileAtomically(path, "x", FileUse::kData);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find(path), absl::string_view::npos) << status;
  EXPECT_EQ(FilesIn(dir.path()), 0);
}

TEST(WriteFileAtomically, AFolderInThePlaceLeavesNothingBehind) {
  const TempDir dir;
  std::filesystem::create_directory(dir.path() + "/k.h");
  EXPECT_FALSE(
      WriteFileAtomically(dir.path() + "/k.h", "x", FileUse::kData).ok());
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
      WriteFileAtomically(path, std::string(bytes, 'x'), FileUse::kData);
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
  // A process that is killed while it writes, and one that writes still; of
  // another one the kernel gave the id to somebody else since.
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const auto write_on = [&] {
    const pid_t child = fork();
    if (child == 0) {
      const auto file = StagedFile::Write(path, "half", FileUse::kPrivate);
      WriteFile(file->temporary() + ".lock", "looked at");
      if (write(ready[1], "x", 1) != 1) _exit(1);
      pause();
      _exit(0);
    }
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    return child;
  };
  const auto end = [](pid_t child) {
    kill(child, SIGKILL);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
  };
  const auto beside = [&](pid_t pid) {
    return absl::StrCat(path, ".", pid, ".new");
  };
  const pid_t killed = write_on();
  end(killed);
  ASSERT_TRUE(std::filesystem::exists(beside(killed)));
  const pid_t writing = write_on();
  const std::string given_away = beside(getppid());
  WriteFile(given_away, "half");
  const std::string others[] = {path + ".x.new", path + ".new",
                                path + ".1x.new", path + ".1.new.db",
                                absl::StrCat(path, "b.", killed, ".new")};
  for (const std::string& other : others) WriteFile(other, "whole");
  std::filesystem::create_symlink(others[0], path + ".2.new");
  std::filesystem::create_directory(path + ".3.new");
  ASSERT_TRUE(WriteFileAtomically(path, "bytes", FileUse::kData).ok());
  for (const std::string& stale :
       {beside(killed), beside(killed) + ".lock", given_away}) {
    EXPECT_FALSE(std::filesystem::exists(stale)) << stale;
  }
  EXPECT_EQ(ReadFile(beside(writing)), "half");
  for (const std::string& other : others) {
    EXPECT_TRUE(std::filesystem::exists(other)) << other;
  }
  EXPECT_TRUE(std::filesystem::is_symlink(path + ".2.new"));
  EXPECT_TRUE(std::filesystem::exists(path + ".3.new"));
  end(writing);
  close(ready[0]);
  close(ready[1]);
}

TEST(StagedFile, APrivateOneIsItsOwnersUnlessItTakesThePlaceOfAnother) {
  const TempDir dir;
  const std::string path = dir.path() + "/a";
  const auto mode = [](const std::string& file) {
    struct stat info = {};
    EXPECT_EQ(stat(file.c_str(), &info), 0) << file;
    return info.st_mode & 0777;
  };
  const mode_t mask = umask(0);
  {
    auto file = StagedFile::Write(path, "bytes", FileUse::kPrivate);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(mode(file->temporary()), 0600u);
    ASSERT_TRUE(file->Commit().ok());
  }
  EXPECT_EQ(mode(path), 0600u);
  umask(027);
  ASSERT_EQ(chmod(path.c_str(), 0664), 0);
  EXPECT_TRUE(WriteFileAtomically(path, "more", FileUse::kPrivate).ok());
  EXPECT_EQ(mode(path), 0664u);
  EXPECT_TRUE(WriteFileAtomically(path, "more", FileUse::kData).ok());
  EXPECT_EQ(mode(path), 0640u);
  EXPECT_TRUE(WriteFileAtomically(path, "more", FileUse::kProgram).ok());
  EXPECT_EQ(mode(path), 0750u);
  umask(mask);
}

TEST(StagedFile, AppearsOnlyWhenCommitted) {
  const TempDir dir;
  const std::string path = dir.path() + "/a";
  {
    auto file = StagedFile::Write(path, "bytes", FileUse::kData);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_EQ(FilesIn(dir.path()), 0);
  auto file = StagedFile::Write(path, "bytes", FileUse::kData);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(ReadFile(path), "bytes");
  EXPECT_EQ(FilesIn(dir.path()), 1);
}

}  // namespace
}  // namespace regatta::cli
