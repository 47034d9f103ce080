#include "device_agent/loop/spool.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/device_agent/loop/spool_on_disk.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SpoolTest, HandsOutResultsOldestFirstAndForgetsAcknowledgedOnes) {
  FakeDisk disk;
  auto spool = OpenOrDie(&disk);
  for (const char* trial : {"b", "a", "c"}) {
    ASSERT_TRUE(spool->Append(MakeResult(trial)).ok());
  }
  EXPECT_THAT(Trials(*spool), ElementsAre("b", "a", "c"));
  spool->Forget("a", 1);
  spool->Forget("c", 2);  // another attempt: not ours
  spool->Forget("unknown", 1);
  EXPECT_THAT(Trials(*spool), ElementsAre("b", "c"));
}

TEST(SpoolTest, ForgetsEveryCopyOfOneAttempt) {
  FakeDisk disk;
  auto spool = OpenOrDie(&disk);
  ASSERT_TRUE(spool->Append(MakeResult("a", 1)).ok());
  ASSERT_TRUE(spool->Append(MakeResult("a", 1)).ok());
  ASSERT_TRUE(spool->Append(MakeResult("a", 2)).ok());
  spool->Forget("a", 1);
  EXPECT_EQ(spool->count(), 1);
}

TEST(SpoolTest, ResultsAndForgetsSurviveAKilledProcess) {
  FakeDisk disk = DiskWith(3);
  {
    auto spool = OpenOrDie(&disk);
    spool->Forget("t1", 1);
  }
  auto spool = OpenOrDie(&disk);
  EXPECT_THAT(Trials(*spool), ElementsAre("t0", "t2"));
  EXPECT_EQ(spool->recovery().results, 2);
  EXPECT_EQ(spool->recovery().damaged, 0);
}

TEST(SpoolTest, ALossOfPowerTakesOnlyWhatWasNotSynced) {
  for (size_t kept = 0; kept < 80; ++kept) {
    FakeDisk disk = DiskWith(2);
    {
      auto spool = OpenOrDie(&disk);
      ASSERT_TRUE(spool->Append(MakeResult("late")).ok());
    }
    disk.LosePower(kept);
    auto spool = OpenOrDie(&disk);
    const std::vector<std::string> trials = Trials(*spool);
    ASSERT_GE(trials.size(), 2u);
    EXPECT_EQ(trials[0], "t0");
    EXPECT_EQ(trials[1], "t1");
  }
}

TEST(SpoolTest, ATailTornAtAnyByteCostsOnlyTheTornRecords) {
  const FakeDisk whole = DiskWith(5);
  // Where each record ends, found independently: sizes are equal.
  const size_t record = (whole.content.size() - 8) / 5;
  ASSERT_EQ(8 + 5 * record, whole.content.size());
  for (size_t length = 0; length <= whole.content.size(); ++length) {
    FakeDisk disk;
    disk.content = disk.durable = whole.content.substr(0, length);
    auto spool = OpenOrDie(&disk);
    const size_t complete = length < 8 ? 0 : (length - 8) / record;
    ASSERT_EQ(Trials(*spool).size(), complete) << "cut at " << length;
    // What follows is kept, too.
    ASSERT_TRUE(spool->Append(MakeResult("new")).ok());
    ASSERT_TRUE(spool->Sync().ok());
    auto again = OpenOrDie(&disk);
    ASSERT_EQ(Trials(*again).size(), complete + 1) << "cut at " << length;
    ASSERT_EQ(again->recovery().damaged, 0);
    ASSERT_EQ(again->recovery().torn_bytes, 0);
  }
}

TEST(SpoolTest, AFlippedByteCostsOnlyItsRecord) {
  const FakeDisk whole = DiskWith(5);
  const size_t record = (whole.content.size() - 8) / 5;
  for (size_t at = 8; at < whole.content.size(); ++at) {
    FakeDisk disk = whole;
    disk.content[at] = static_cast<char>(disk.content[at] ^ 0x5A);
    auto spool = OpenOrDie(&disk);
    std::vector<std::string> expected;
    const size_t hit = (at - 8) / record;
    for (size_t i = 0; i < 5; ++i) {
      if (i != hit) expected.push_back(absl::StrCat("t", i));
    }
    ASSERT_EQ(Trials(*spool), expected) << "flipped " << at;
    if (hit == 4) {
      EXPECT_EQ(spool->recovery().torn_bytes, static_cast<int64_t>(record));
    } else {
      EXPECT_EQ(spool->recovery().damaged, 1);
      EXPECT_EQ(spool->recovery().damaged_bytes, static_cast<int64_t>(record));
    }
  }
}

TEST(SpoolTest, ADamagedHeaderIsRepaired) {
  for (size_t at = 0; at < 6; ++at) {
    FakeDisk disk = DiskWith(2);
    disk.content[at] = '?';
    auto spool = OpenOrDie(&disk);
    EXPECT_THAT(Trials(*spool), ElementsAre("t0", "t1"));
    EXPECT_EQ(spool->recovery().damaged, 1);
    EXPECT_EQ(OpenOrDie(&disk)->recovery().damaged, 0);
  }
}

TEST(SpoolTest, RefusesAFileOfAnotherKindAndLeavesItAlone) {
  FakeDisk disk;
  disk.content = disk.durable = "#!/bin/sh\necho precious\n";
  const std::string before = disk.content;
  auto spool = Spool::Open(std::make_unique<FakeSpoolStorage>(&disk), {});
  EXPECT_EQ(spool.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(spool.status().message()),
              HasSubstr("no result spool"));
  EXPECT_EQ(disk.content, before);
}

TEST(SpoolTest, RefusesANewerFormatAndLeavesItAlone) {
  FakeDisk disk = DiskWith(1);
  disk.content[6] = '2';
  const std::string before = disk.content;
  auto spool = Spool::Open(std::make_unique<FakeSpoolStorage>(&disk), {});
  EXPECT_EQ(spool.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(spool.status().message()), HasSubstr("format 2"));
  EXPECT_EQ(disk.content, before);
}

TEST(SpoolTest, AnAttackersMarkersInPayloadsDoNotConfuseTheReader) {
  FakeDisk disk;
  {
    auto spool = OpenOrDie(&disk);
    v1::SpooledResult odd = MakeResult("odd");
    std::string noise;
    for (int i = 0; i < 100; ++i) noise += "\xC7\x9A\xF3\xE1";
    odd.set_assignment_id("x");
    odd.mutable_result()->mutable_spec()->set_workload("w");
    // Marker bytes are no UTF-8, so they can come in no string field; numbers
    // can hold them.
    odd.mutable_result()->set_time_ns(0x00E1F39AC7E1F39A);
    odd.mutable_result()->set_max_error(1e300);
    ASSERT_TRUE(spool->Append(odd).ok());
    ASSERT_TRUE(spool->Append(MakeResult("after")).ok());
    ASSERT_TRUE(spool->Sync().ok());
  }
  disk.content[10] ^= 1;  // the first record's marker
  auto spool = OpenOrDie(&disk);
  EXPECT_THAT(Trials(*spool), ElementsAre("after"));
}

TEST(SpoolTest, AResultThatTheDiskRefusesIsKeptAndWrittenLater) {
  FakeDisk disk;
  auto spool = OpenOrDie(&disk);
  ASSERT_TRUE(spool->Append(MakeResult("before")).ok());
  ASSERT_TRUE(spool->Sync().ok());
  disk.broken = true;
  EXPECT_FALSE(spool->Append(MakeResult("kept")).ok());
  EXPECT_FALSE(spool->Sync().ok());
  EXPECT_FALSE(spool->durable());
  EXPECT_THAT(Trials(*spool), ElementsAre("before", "kept"));
  disk.broken = false;
  EXPECT_TRUE(spool->Sync().ok());
  EXPECT_TRUE(spool->durable());
  disk.LosePower(0);
  EXPECT_THAT(Trials(*OpenOrDie(&disk)), ElementsAre("before", "kept"));
}

TEST(SpoolTest, WhateverOperationFailsEverySyncedResultSurvivesALossOfPower) {
  for (int64_t nth = 0; nth < 60; ++nth) {
    FakeDisk disk;
    SpoolLimits limits;
    limits.slack_bytes = 200;  // compacts often
    std::set<std::string> alive;
    {
      auto spool = OpenOrDie(&disk, limits);
      disk.fail_at = nth;
      for (int i = 0; i < 20; ++i) {
        const std::string trial = absl::StrCat("t", i);
        spool->Append(MakeResult(trial)).IgnoreError();
        alive.insert(trial);
        if (i % 3 == 2) {
          spool->Forget(absl::StrCat("t", i - 1), 1);
          alive.erase(absl::StrCat("t", i - 1));
        }
        spool->Sync().IgnoreError();
      }
      ASSERT_TRUE(spool->Sync().ok());
      const std::vector<std::string> now = Trials(*spool);
      ASSERT_EQ(std::set<std::string>(now.begin(), now.end()), alive) << nth;
      EXPECT_EQ(spool->unreadable(), 0);
    }
    disk.LosePower(0);
    auto spool = OpenOrDie(&disk, limits);
    const std::vector<std::string> back = Trials(*spool);
    const std::set<std::string> found(back.begin(), back.end());
    for (const std::string& trial : alive) {
      ASSERT_TRUE(found.contains(trial)) << trial << " lost, failure " << nth;
    }
    EXPECT_EQ(spool->recovery().damaged, 0) << nth;
  }
}

TEST(SpoolTest, ARecordThatRotsAfterOpeningIsDroppedAndCounted) {
  FakeDisk disk = DiskWith(3);
  auto spool = OpenOrDie(&disk);
  const size_t record = (disk.content.size() - 8) / 3;
  disk.content[8 + record + record / 2] ^= 0x10;
  EXPECT_THAT(Trials(*spool), ElementsAre("t0", "t2"));
  EXPECT_EQ(spool->unreadable(), 1);
  EXPECT_EQ(spool->count(), 2);
}

TEST(SpoolTest, ListsAssignmentsWhoseLastResultWaits) {
  FakeDisk disk;
  {
    auto spool = OpenOrDie(&disk);
    v1::SpooledResult ends = MakeResult("x", 2);
    ends.set_last(true);
    ends.mutable_result()->set_lease_epoch(9);
    ends.set_lease_proof("proof");
    ends.mutable_result()->set_device_id("d1");
    ASSERT_TRUE(spool->Append(MakeResult("w")).ok());
    ASSERT_TRUE(spool->Append(ends).ok());
    ASSERT_TRUE(spool->Sync().ok());
  }
  auto spool = OpenOrDie(&disk);
  const std::vector<v1::HeldAssignment> finished = spool->Finished(10);
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].assignment_id(), "a-x");
  EXPECT_EQ(finished[0].attempt(), 2);
  EXPECT_EQ(finished[0].lease_epoch(), 9);
  EXPECT_EQ(finished[0].lease_proof(), "proof");
  EXPECT_EQ(finished[0].device_id(), "d1");
  EXPECT_THAT(spool->Finished(0), IsEmpty());
}

TEST(SpoolTest, RandomlyDamagedFilesNeverCrashTheReader) {
  const FakeDisk whole = DiskWith(20);
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    FakeDisk disk = whole;
    const uint64_t wounds = 1 + random.Below(12);
    for (uint64_t i = 0; i < wounds; ++i) {
      disk.content[8 + random.Below(disk.content.size() - 8)] =
          static_cast<char>(random.Below(256));
    }
    auto spool = OpenOrDie(&disk);
    // At least as many survive as records were not hit.
    EXPECT_GE(Trials(*spool).size() + wounds, 20u);
  }
}

class SpoolFileTest : public testing::Test {
 protected:
  SpoolFileTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "spool-XXXXXX").string();
    dir_ = mkdtemp(pattern.data());
  }
  ~SpoolFileTest() override { std::filesystem::remove_all(dir_); }
  std::string Path() const { return absl::StrCat(dir_, "/spool"); }
  std::unique_ptr<Spool> Open(SpoolLimits limits = {}) {
    auto storage = OpenSpoolFile(Path());
    EXPECT_TRUE(storage.ok()) << storage.status();
    auto spool = Spool::Open(*std::move(storage), limits);
    EXPECT_TRUE(spool.ok()) << spool.status();
    return *std::move(spool);
  }
  std::string dir_;
};

TEST_F(SpoolFileTest, KeepsResultsOverReopeningAndCompaction) {
  SpoolLimits limits;
  limits.slack_bytes = 1000;
  {
    auto spool = Open(limits);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(spool->Append(MakeResult(absl::StrCat("t", i), 1, 100)).ok());
    }
    ASSERT_TRUE(spool->Sync().ok());
    for (int i = 0; i < 48; ++i) spool->Forget(absl::StrCat("t", i), 1);
    ASSERT_TRUE(spool->Append(MakeResult("new")).ok());
    ASSERT_TRUE(spool->Sync().ok());
    EXPECT_LT(std::filesystem::file_size(Path()), 5000u);
  }
  EXPECT_THAT(Trials(*Open(limits)), ElementsAre("t48", "t49", "new"));
}

TEST_F(SpoolFileTest, TurnsAwayASecondAgent) {
  auto spool = Open();
  const auto second = OpenSpoolFile(Path());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(Path()));
}

TEST_F(SpoolFileTest, NamesTheFileThatCannotBeOpened) {
  const auto storage = OpenSpoolFile("/nowhere/at/all/spool");
  ASSERT_FALSE(storage.ok());
  EXPECT_THAT(std::string(storage.status().message()),
              HasSubstr("/nowhere/at/all/spool"));
}

// A probe may fail or be cut short anywhere: results are neither lost nor made.
TEST(SpoolTest, AProbeThatFailsAtAnyOperationChangesNoResult) {
  for (int64_t fail_at = 0; fail_at < 4; ++fail_at) {
    for (const size_t kept : {size_t{0}, size_t{100}, size_t{100'000}}) {
      FakeDisk disk = DiskWith(2);
      auto spool = OpenOrDie(&disk);
      disk.fail_at = fail_at;
      const bool probed = spool->Probe().ok();
      EXPECT_EQ(probed, fail_at >= 2) << fail_at;  // append, sync, truncate
      disk.fail_at = -1;
      EXPECT_THAT(Trials(*spool), ElementsAre("t0", "t1"));
      EXPECT_TRUE(spool->Append(MakeResult("t2")).ok() || !probed);
      EXPECT_TRUE(spool->Sync().ok());
      disk.LosePower(kept);
      EXPECT_THAT(Trials(*OpenOrDie(&disk)), ElementsAre("t0", "t1", "t2"));
    }
  }
}

}  // namespace
}  // namespace regatta
