// What is built beside lookups, and what is remembered of it.
#include "server/query/rebuilds.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/support/spaces.h"

namespace regatta {
namespace {

using testing::kTargetText;
using testing::SpaceOf;

RecordedBinary BinaryOf(const std::string& workload) {
  RecordedBinary binary;
  binary.workload = workload;
  binary.target = std::make_shared<const CompletedTarget>(
      CompletedTarget{*ParseTarget(kTargetText), kTargetText, "now"});
  const auto space = SpaceOf(workload, kTargetText);
  binary.schedule.set_text(space->Print(space->Default()));
  binary.hash = absl::StrCat("hash of ", workload);
  return binary;
}

absl::StatusOr<std::string> HashOf(const Space& space, std::string_view text) {
  EXPECT_TRUE(space.Parse(text).ok());
  return absl::StrCat("hash of ", space.context().workload.text);
}

constexpr char kMatmul[] = "matmul(m=8,n=16,k=32)";

TEST(Rebuilds, KnowsABinaryOnceItWasBuilt) {
  std::atomic<int> built = 0;
  Rebuilds rebuilds([&](const Space& space, std::string_view text) {
    ++built;
    return HashOf(space, text);
  });
  RecordedBinary other = BinaryOf(kMatmul);
  other.hash = "another";
  EXPECT_FALSE(rebuilds.Gives(other));
  EXPECT_FALSE(rebuilds.Gives(BinaryOf("softmax(rows=4,cols=9)")));
  rebuilds.Gives(BinaryOf(kMatmul));
  rebuilds.WaitUntilIdle();
  EXPECT_TRUE(rebuilds.Gives(BinaryOf(kMatmul)));
  EXPECT_TRUE(rebuilds.Gives(BinaryOf("softmax(rows=4,cols=9)")));
  EXPECT_FALSE(rebuilds.Gives(other));
  rebuilds.WaitUntilIdle();
  EXPECT_EQ(built, 3);
}

TEST(Rebuilds, WhatCannotBeBuiltIsNotGiven) {
  Rebuilds rebuilds([](const Space&, std::string_view) {
    return absl::StatusOr<std::string>(absl::InternalError("no"));
  });
  RecordedBinary nonsense = BinaryOf(kMatmul);
  nonsense.workload = "matmul(m=8)";
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(rebuilds.Gives(BinaryOf(kMatmul)));
    EXPECT_FALSE(rebuilds.Gives(nonsense));
    rebuilds.WaitUntilIdle();
  }
}

// A lookup never waits, whatever is being built and however much is to be.
TEST(Rebuilds, AnswersAtOnceWhileABuildRuns) {
  std::mutex mutex;
  std::condition_variable changed;
  bool running = false, go = false;
  int built = 0;
  Rebuilds rebuilds([&](const Space& space, std::string_view text) {
    std::unique_lock lock(mutex);
    running = true;
    ++built;
    changed.notify_all();
    changed.wait(lock, [&] { return go; });
    return HashOf(space, text);
  });
  RecordedBinary binary = BinaryOf(kMatmul);
  EXPECT_FALSE(rebuilds.Gives(binary));
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return running; });
  }
  // More than it lets wait: the last ones are forgotten.
  for (int i = 0; i < 2000; ++i) {
    binary.hash = absl::StrCat(i);
    EXPECT_FALSE(rebuilds.Gives(binary));
  }
  {
    std::unique_lock lock(mutex);
    EXPECT_EQ(built, 1);
    go = true;
    changed.notify_all();
  }
  rebuilds.WaitUntilIdle();
  EXPECT_EQ(built, 1025);
}

// What is known stays so while more is learnt than there is room for.
TEST(Rebuilds, ForgetsTheOldestFirst) {
  std::atomic<int> built = 0;
  Rebuilds rebuilds(
      [&](const Space& space, std::string_view text) {
        ++built;
        return HashOf(space, text);
      },
      /*max_known=*/2);
  const auto learn = [&](int m) {
    const RecordedBinary binary =
        BinaryOf(absl::StrCat("matmul(m=", m, ",n=16,k=32)"));
    const bool known = rebuilds.Gives(binary);
    rebuilds.WaitUntilIdle();
    return known;
  };
  for (int m : {1, 2, 3}) EXPECT_FALSE(learn(m));
  EXPECT_TRUE(learn(3));
  EXPECT_TRUE(learn(2));
  EXPECT_EQ(built, 3);
  EXPECT_FALSE(learn(1));
  EXPECT_EQ(built, 4);
  EXPECT_TRUE(learn(1));
  EXPECT_TRUE(learn(3));
  EXPECT_FALSE(learn(2));
}

// A build that this machine could not do says nothing of the binary.
TEST(Rebuilds, BuildsAgainWhatFailedForLackOfSomething) {
  std::atomic<int> built = 0;
  Rebuilds rebuilds([&](const Space& space,
                        std::string_view text) -> absl::StatusOr<std::string> {
    if (++built == 1) return absl::ResourceExhaustedError("no memory file");
    return HashOf(space, text);
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(rebuilds.Gives(BinaryOf(kMatmul)));
    rebuilds.WaitUntilIdle();
  }
  EXPECT_TRUE(rebuilds.Gives(BinaryOf(kMatmul)));
  EXPECT_EQ(built, 2);
}

TEST(BuildOnTheSpot, ComparesTheHashes) {
  const GivesBinary gives = BuildOnTheSpot(HashOf);
  EXPECT_TRUE(gives(BinaryOf(kMatmul)));
  RecordedBinary other = BinaryOf(kMatmul);
  other.hash = "another";
  EXPECT_FALSE(gives(other));
}

}  // namespace
}  // namespace regatta
