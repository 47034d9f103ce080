#include "proto/security/audit_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

class AuditLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<AuditLog> Open(const AuditLimits& limits = {}) {
    auto log = AuditLog::Open(path_, "tracker", clock_, limits);
    EXPECT_TRUE(log.ok()) << log.status().message();
    return *std::move(log);
  }
  TempDir temp_;
  const std::string path_ = temp_.path() + "/audit.jsonl";
  FakeClock clock_{absl::FromUnixSeconds(1'800'000'000)};
};

TEST_F(AuditLogTest, WhatWasDoneIsThereAfterARestart) {
  Open()->Did("regatta://lab/admin/ann", "ipv4:10.0.0.1:5", "LogService/Import",
              "ok");
  const auto log = Open();
  log->Refused("unknown", "", "handshake", "wrong");
  const auto entries = *log->Newest(10);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].who(), "regatta://lab/admin/ann");
  EXPECT_EQ(entries[0].from(), "ipv4:10.0.0.1:5");
  EXPECT_EQ(entries[0].what(), "LogService/Import");
  EXPECT_EQ(entries[0].result(), "ok");
  EXPECT_EQ(entries[0].at_unix_ms(), 1'800'000'000'000);
  EXPECT_EQ(entries[0].daemon(), "tracker");
  EXPECT_EQ(entries[1].result(), "refused: wrong");
  EXPECT_EQ(log->Newest(1)->front().result(), "refused: wrong");
}

TEST_F(AuditLogTest, RefusalsThatAreAlikeAreOneLineAndACount) {
  const auto log = Open();
  for (int i = 0; i < 1000; ++i) log->Refused("a", "", "M", "no");
  EXPECT_EQ(log->Newest(100)->size(), 1u);
  clock_.Advance(absl::Minutes(1));
  log->Tick();
  const auto entries = *log->Newest(100);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1].count(), 999);
  // A new minute begins with a line again.
  log->Refused("a", "", "M", "no");
  EXPECT_EQ(log->Newest(100)->size(), 3u);
}

TEST_F(AuditLogTest, AFloodOfDifferentRefusalsIsBounded) {
  const auto log = Open();
  for (int i = 0; i < 100'000; ++i) {
    log->Refused(absl::StrCat("caller", i), "", "M", "no");
  }
  EXPECT_LT(std::filesystem::file_size(path_), 60u * 400u);
  clock_.Advance(absl::Minutes(1));
  log->Tick();
  const auto entries = *log->Newest(1000);
  ASSERT_EQ(entries.size(), 61u);
  EXPECT_EQ(entries.back().count(), 100'000 - 60);
}

TEST_F(AuditLogTest, TheFilesTurnAndTheOldestGoes) {
  const auto log = Open({.max_file_bytes = 2000, .old_files = 2});
  for (int i = 0; i < 100; ++i) {
    log->Did(absl::StrCat("a", i), "", "M", "ok");
  }
  EXPECT_EQ(log->Newest(1)->front().who(), "a99");
  // What stands in the files before this one is there to be read.
  const size_t here =
      static_cast<size_t>(std::ranges::count(ReadFile(path_), '\n'));
  const auto newest = *log->Newest(here + 5);
  ASSERT_EQ(newest.size(), here + 5);
  for (size_t i = 0; i < newest.size(); ++i) {
    EXPECT_EQ(newest[i].who(), absl::StrCat("a", 100 - newest.size() + i));
  }
  EXPECT_TRUE(std::filesystem::exists(path_ + ".2"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".3"));
  for (const char* name : {"", ".1", ".2"}) {
    EXPECT_LE(std::filesystem::file_size(path_ + name), 2000u);
  }
}

TEST_F(AuditLogTest, FailuresThatAreAlikeAreFolded) {
  const auto log = Open();
  for (int i = 0; i < 1000; ++i) {
    // A connection of its own for each.
    log->Did("a", absl::StrCat("ipv4:10.0.0.1:", i), "M", "failed: no");
  }
  log->Did("a", "ipv4:10.0.0.2:1", "M", "failed: no");
  EXPECT_EQ(log->Newest(100)->size(), 2u);
  clock_.Advance(absl::Minutes(1));
  log->Tick();
  const auto entries = *log->Newest(100);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[2].count(), 999);
  EXPECT_EQ(entries[2].result(), "failed: no");
}

TEST_F(AuditLogTest, ACallerPushesNobodyElseOut) {
  const auto log = Open({.max_file_bytes = 100'000, .old_files = 2});
  log->Did("ann", "", "M", "ok");
  for (int i = 0; i < 100'000; ++i) {
    log->Did("mallory", "", "M", i % 2 == 0 ? "ok" : absl::StrCat("failed", i));
  }
  log->Did("bob", "", "M", "ok");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".1"));
  clock_.Advance(absl::Minutes(1));
  log->Tick();
  const auto entries = *log->Newest(1000);
  ASSERT_EQ(entries.size(), 1u + 60 + 1 + 1);
  EXPECT_EQ(entries.front().who(), "ann");
  EXPECT_EQ(entries[61].who(), "bob");
  EXPECT_EQ(entries.back().who(), "mallory");
  EXPECT_EQ(entries.back().count(), 100'000 - 60);
  // The next minute begins anew.
  log->Did("mallory", "", "M", "ok");
  EXPECT_EQ(log->Newest(1000)->size(), entries.size() + 1);
}

TEST_F(AuditLogTest, AFileThatCannotBeMadeCostsNoOldOne) {
  // A folder that is not empty cannot be replaced by a file.
  std::filesystem::create_directories(path_ + ".next/in-the-way");
  WriteFile(path_ + ".1", "old\n");
  const auto log = Open({.max_file_bytes = 2000, .old_files = 2});
  for (int i = 0; i < 50; ++i) log->Did(absl::StrCat("a", i), "", "M", "ok");
  EXPECT_EQ(ReadFile(path_ + ".1"), "old\n");
  EXPECT_EQ(log->Newest(100)->size(), 50u);
  std::filesystem::remove_all(path_ + ".next");
  clock_.Advance(absl::Minutes(1));
  log->Did("later", "", "M", "ok");
  EXPECT_EQ(ReadFile(path_ + ".2"), "old\n");
  EXPECT_EQ(log->Newest(100)->size(), 51u);
}

TEST_F(AuditLogTest, TextFromOutsideIsCutAndKeepsToItsLine) {
  const auto log = Open();
  log->Refused("a\nb", "", std::string(100'000, 'x'), "\"quoted\"\n{}");
  const std::string bytes = ReadFile(path_);
  EXPECT_LT(bytes.size(), 1500u);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), '\n'), 1);
  EXPECT_EQ(log->Newest(1)->front().result(), "refused: \"quoted\"\n{}");
}

TEST_F(AuditLogTest, BytesThatAreNoTextDoNotLoseTheLine) {
  const auto log = Open();
  log->Refused(std::string("\xff\xfe\x80", 3), "", "M", "no");
  ASSERT_EQ(log->Newest(10)->size(), 1u);
  EXPECT_EQ(log->Newest(10)->front().what(), "M");
}

TEST_F(AuditLogTest, AHalfLineSwallowsNothing) {
  Open()->Did("a", "", "M", "ok");
  WriteFile(path_, ReadFile(path_) + "{\"who\":\"b");
  const auto log = Open();
  log->Did("c", "", "M", "ok");
  const auto entries = *log->Newest(10);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1].who(), "c");
}

TEST_F(AuditLogTest, AFolderThatIsMissingIsNamed) {
  const auto log = AuditLog::Open("/nowhere/audit", "tracker", clock_);
  EXPECT_NE(log.status().message().find("/nowhere/audit"), std::string::npos);
}

}  // namespace
}  // namespace regatta::testing
