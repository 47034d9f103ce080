#include "base/replace_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/system_error.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

class ReplaceFileTest : public ::testing::Test {
 protected:
  ReplaceFileTest() {
    std::string pattern = ::testing::TempDir() + "/replace-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/file";
    beside_ = folder_ + "/file.new";
  }
  ~ReplaceFileTest() override { std::filesystem::remove_all(folder_); }
  std::string Content() { return ReadSmallFile(path_).value_or("none"); }
  int Files() {
    int files = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(folder_)) {
      ++files;
    }
    return files;
  }
  std::string folder_, path_, beside_;
};

TEST_F(ReplaceFileTest, WhatIsWrittenBesideTakesThePlaceWhenItIsWhole) {
  std::ofstream(path_) << "old";
  std::ofstream(beside_) << "left by a crash";
  FileBeside file(path_, beside_);
  ASSERT_EQ(file.Open(0640), 0);
  ASSERT_EQ(file.Append("ne"), 0);
  EXPECT_EQ(Content(), "old");
  ASSERT_EQ(file.Append("w"), 0);
  ASSERT_EQ(file.Sync(), 0);
  ASSERT_EQ(file.Commit(), 0);
  EXPECT_EQ(Content(), "new");
  EXPECT_EQ(Files(), 1);
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  // It is the file from now on.
  const UniqueFd open = file.Take();
  ASSERT_EQ(write(open.get(), "er", 2), 2);
  EXPECT_EQ(Content(), "newer");
}

TEST_F(ReplaceFileTest, WhatIsNotWholeLeavesNothing) {
  std::ofstream(path_) << "old";
  {
    FileBeside file(path_, beside_);
    ASSERT_EQ(file.Open(0600), 0);
    ASSERT_EQ(file.Append("half"), 0);
  }
  EXPECT_EQ(Content(), "old");
  EXPECT_EQ(Files(), 1);
  {
    // A folder stands where the file is to be.
    FileBeside file(folder_, beside_);
    ASSERT_EQ(file.Open(0600), 0);
    EXPECT_NE(file.Commit(), 0);
  }
  EXPECT_EQ(Files(), 1);
  FileBeside nowhere(folder_ + "/no/file", folder_ + "/no/file.new");
  EXPECT_EQ(nowhere.Open(0600), ENOENT);
}

TEST_F(ReplaceFileTest, ReplacesWholeAndNamesThePathItCannot) {
  ASSERT_TRUE(ReplaceFile(path_, "one", 0600).ok());
  ASSERT_TRUE(ReplaceFile(path_, "two", 0600).ok());
  EXPECT_EQ(Content(), "two");
  EXPECT_EQ(Files(), 1);
  const absl::Status status = ReplaceFile(folder_ + "/no/file", "x", 0600);
  EXPECT_EQ(status.message(),
            "cannot write " + folder_ + "/no/file: No such file or directory");
}

TEST(SystemErrorTest, AFilesTroubleHasAKind) {
  const auto code = [](int error) {
    return FileError("f", "write", error).code();
  };
  EXPECT_EQ(code(ENOSPC), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(EDQUOT), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(EFBIG), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(EROFS), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code(EACCES), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code(EIO), absl::StatusCode::kInternal);
  EXPECT_EQ(FileError("f", "write", EIO).message(),
            "cannot write f: Input/output error");
  errno = EMFILE;
  EXPECT_EQ(SystemError("pipe").message(), "pipe: Too many open files");
}

}  // namespace
}  // namespace regatta
