// What tests on a Lab ask again and again.
#ifndef REGATTA_TESTS_FAULTS_LAB_CHECKS_H_
#define REGATTA_TESTS_FAULTS_LAB_CHECKS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/faults/lab.h"

namespace regatta::faults {

// A fixture with a lab whose promises are checked at the end.
class LabTest : public ::testing::Test {
 protected:
  ~LabTest() override { EXPECT_THAT(lab_.Violations(), ::testing::IsEmpty()); }
  v1::Presence Presence(const Board& board) const {
    return lab_.Status(board.id).presence();
  }
  // Until the tracker has just heard of the board, and answered.
  void AwaitBeat(Board& board) {
    ASSERT_TRUE(lab_.RunUntil(
        [&] { return lab_.Status(board.id).last_seen_ms() >= 1000; },
        absl::Seconds(30)));
    ASSERT_TRUE(lab_.RunUntil(
        [&] { return lab_.Status(board.id).last_seen_ms() < 100; },
        absl::Seconds(30)));
    lab_.Run(absl::Milliseconds(50));
  }
  void AwaitRun(const Board& board, size_t number = 1) {
    ASSERT_TRUE(lab_.RunUntil(
        [&] { return board.running && board.runs.size() >= number; },
        absl::Minutes(5)));
  }
  static int64_t Finished(const Board& board) {
    return std::count_if(board.runs.begin(), board.runs.end(),
                         [](const TrialRun& run) { return run.end; });
  }
  // Everything submitted is stored in time, with nothing left anywhere.
  void ExpectDrains(absl::Duration limit = absl::Seconds(150)) {
    EXPECT_TRUE(lab_.HealAndDrain(limit));
  }
  const v1::TrialResult& Stored(const std::string& trial) {
    static const v1::TrialResult kNone;
    const auto it = lab_.server().log.find(trial);
    if (it != lab_.server().log.end()) return it->second;
    ADD_FAILURE() << trial << " is not stored";
    return kNone;
  }

  Lab lab_;
};

}  // namespace regatta::faults

#endif  // REGATTA_TESTS_FAULTS_LAB_CHECKS_H_
