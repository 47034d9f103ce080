// Measuring sessions on a fake clock, with a board whose reference takes what
// the test says.
#include "device_agent/measure/measuring_session.h"

#include <sched.h>

#include <deque>
#include <string>

#include "device_agent/measure/host_reference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

class MeasuringSessionTest : public ::testing::Test {
 protected:
  MeasuringSession::Parts Parts() {
    MeasuringSession::Parts parts;
    parts.board = "b";
    parts.clock = &clock_;
    parts.time_reference = [this](bool alone) -> std::optional<double> {
      ++looks_;
      alone_ += alone ? 1 : 0;
      if (!next_.empty()) {
        reference_ns_ = next_.front();
        next_.pop_front();
      }
      return reference_ns_;
    };
    parts.pause = [this](absl::Duration wait) {
      paused_ += wait;
      clock_.Advance(wait);
    };
    return parts;
  }

  FakeClock clock_;
  std::optional<double> reference_ns_ = 1e6;
  std::deque<double> next_;  // what it takes at the next looks
  int looks_ = 0, alone_ = 0;
  absl::Duration paused_;
  MeasuringSession session_{Parts()};
};

TEST_F(MeasuringSessionTest, BeginsWithTheReferenceTimedAlone) {
  EXPECT_EQ(session_.id(), "");
  session_.Begin();
  EXPECT_EQ(session_.id(), "b/1");
  EXPECT_EQ(session_.reference_ns(), 1e6);
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(alone_, 1);
  session_.Begin();
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(paused_, absl::ZeroDuration());
}

TEST_F(MeasuringSessionTest, TheToleranceIsThreePercentOrTwiceTheNoise) {
  session_.SetNoiseFloor(0.001);
  EXPECT_DOUBLE_EQ(session_.Tolerance(), 0.03);
  session_.SetNoiseFloor(0.04);
  EXPECT_DOUBLE_EQ(session_.Tolerance(), 0.08);
  session_.SetNoiseFloor(std::nullopt);
  EXPECT_DOUBLE_EQ(session_.Tolerance(), 0.2);
}

TEST_F(MeasuringSessionTest, IsDueAfterSoManyResultsOrSoMuchWaiting) {
  session_.Begin();
  EXPECT_FALSE(session_.due().has_value());
  for (int i = 1; i < MeasuringSession::kResults; ++i) session_.Timed();
  EXPECT_FALSE(session_.Due());
  session_.Timed();
  EXPECT_TRUE(session_.Due());
  EXPECT_EQ(session_.Prove(), "");
  EXPECT_FALSE(session_.Due());

  session_.Timed();
  clock_.Advance(absl::Milliseconds(999));
  session_.Timed();
  EXPECT_FALSE(session_.Due());
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(session_.Due());
}

TEST_F(MeasuringSessionTest, WithinTheToleranceResultsHoldInOneLook) {
  session_.SetNoiseFloor(0.01);
  session_.Begin();
  for (const double now : {1.029e6, 0.971e6}) {
    session_.Timed();
    reference_ns_ = now;
    const int before = looks_;
    EXPECT_EQ(session_.Prove(), "");
    EXPECT_EQ(looks_, before + 1);
  }
  EXPECT_EQ(alone_, 1);  // builds went on meanwhile
  EXPECT_EQ(session_.closed(), 0);
}

TEST_F(MeasuringSessionTest, DriftClosesTheSessionAndSaysByHowMuch) {
  session_.SetNoiseFloor(0.01);
  session_.Begin();
  session_.Timed();
  reference_ns_ = 1.05e6;
  const std::string why = session_.Prove();
  EXPECT_THAT(why, HasSubstr("1000.0 us when measuring session b/1 began"));
  EXPECT_THAT(why, HasSubstr("+5.0 % after this run, allowed are 3.0 %"));
  EXPECT_EQ(session_.closed(), 1);
  // Faster is drift too.
  session_.Begin();
  EXPECT_EQ(session_.id(), "b/2");
  EXPECT_EQ(session_.reference_ns(), 1.05e6);
  session_.Timed();
  reference_ns_ = 1e6;
  EXPECT_THAT(session_.Prove(), HasSubstr("-4.8 %"));
  EXPECT_EQ(session_.closed(), 2);
}

TEST_F(MeasuringSessionTest, AMomentsDisturbanceIsNoDrift) {
  session_.SetNoiseFloor(0.01);
  session_.Begin();
  session_.Timed();
  next_ = {1.4e6, 1.4e6, 1.01e6};
  EXPECT_EQ(session_.Prove(), "");
  EXPECT_EQ(alone_, 3);  // the first, and both further looks
  EXPECT_EQ(session_.closed(), 0);
}

TEST_F(MeasuringSessionTest, WhatBuildsDoToItIsKnownOnceItWasLookedInto) {
  session_.SetNoiseFloor(0.01);
  session_.Begin();
  session_.Timed();
  next_ = {1.1e6, 1e6};  // beside a build, alone
  EXPECT_EQ(session_.Prove(), "");
  EXPECT_EQ(alone_, 2);
  for (int i = 0; i < 10; ++i) {
    session_.Timed();
    next_ = {i % 2 == 0 ? 1.12e6 : 1e6};
    EXPECT_EQ(session_.Prove(), "");
  }
  EXPECT_EQ(alone_, 2);
  // Slower still is looked into.
  session_.Timed();
  next_ = {1.3e6, 1e6};
  EXPECT_EQ(session_.Prove(), "");
  EXPECT_EQ(alone_, 3);
}

TEST_F(MeasuringSessionTest, DriftDoesNotHideBehindWhatBuildsDo) {
  session_.SetNoiseFloor(0.01);
  session_.Begin();
  session_.Timed();
  next_ = {1.1e6, 1e6};
  EXPECT_EQ(session_.Prove(), "");
  reference_ns_ = 1.1e6;  // for good
  session_.Timed();
  EXPECT_EQ(session_.Prove(), "");
  clock_.Advance(MeasuringSession::kAge);
  session_.Timed();
  EXPECT_THAT(session_.Prove(), HasSubstr("+10.0 %"));
}

TEST_F(MeasuringSessionTest, TheNextSessionBeginsWhenTheBoardHasSettled) {
  session_.SetNoiseFloor(0.01);
  session_.Begin();
  session_.Timed();
  reference_ns_ = 1.5e6;
  EXPECT_NE(session_.Prove(), "");
  paused_ = absl::ZeroDuration();
  // It cools down: 20 % , 10 %, 1 %.
  next_ = {1.5e6, 1.2e6, 1.08e6, 1.07e6};
  session_.Begin();
  EXPECT_EQ(session_.id(), "b/2");
  EXPECT_EQ(session_.reference_ns(), 1.07e6);
  EXPECT_EQ(paused_, 3 * MeasuringSession::kSettleStep);
}

TEST_F(MeasuringSessionTest, ABoardThatNeverSettlesIsNotWaitedForForEver) {
  session_.SetNoiseFloor(0.01);
  session_.Begin();
  session_.Timed();
  reference_ns_ = 2e6;
  EXPECT_NE(session_.Prove(), "");
  for (int i = 0; i < 200; ++i) next_.push_back(i % 2 == 0 ? 1e6 : 2e6);
  paused_ = absl::ZeroDuration();
  session_.Begin();
  EXPECT_EQ(session_.id(), "b/2");
  EXPECT_EQ(paused_, MeasuringSession::kLongestSettling);
}

TEST_F(MeasuringSessionTest, AnIdleBoardIsLookedAtBeforeItsNextRun) {
  session_.SetNoiseFloor(0.01);
  session_.Begin();
  session_.Timed();
  EXPECT_EQ(session_.Prove(), "");
  clock_.Advance(MeasuringSession::kAge - absl::Milliseconds(1));
  const int before = looks_;
  session_.Begin();
  EXPECT_EQ(looks_, before);
  clock_.Advance(absl::Milliseconds(1));
  reference_ns_ = 1.1e6;  // got warm meanwhile
  session_.Begin();
  EXPECT_EQ(session_.id(), "b/2");
  EXPECT_EQ(session_.reference_ns(), 1.1e6);
}

TEST_F(MeasuringSessionTest, WithoutAReferenceThereIsNoSession) {
  reference_ns_ = std::nullopt;
  session_.Begin();
  EXPECT_EQ(session_.id(), "");
  session_.Timed();
  EXPECT_FALSE(session_.due().has_value());
  EXPECT_EQ(session_.Prove(), "");
  // One that cannot be looked at any more proves no drift.
  reference_ns_ = 1e6;
  session_.Begin();
  EXPECT_EQ(session_.id(), "b/1");
  session_.Timed();
  reference_ns_ = std::nullopt;
  EXPECT_EQ(session_.Prove(), "");
}

TEST(HostReferenceTest, TimesTheSameWorkAgainAndAgain) {
  HostReference reference(0);
  const std::optional<double> first = reference.Time();
  ASSERT_TRUE(first.has_value());
  EXPECT_GT(*first, 1e5);
  EXPECT_LT(*first, 1e8);
  EXPECT_FALSE(HostReference(CPU_SETSIZE - 1).Time().has_value());
}

}  // namespace
}  // namespace regatta
