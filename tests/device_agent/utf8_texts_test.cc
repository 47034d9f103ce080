#include "proto/utf8_texts.h"

#include <string>

#include "device_agent/loop/admission.h"
#include "gtest/gtest.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {
namespace {

TEST(MakeTextsUtf8Test, ReachesEveryText) {
  v1::SpawnEvent event;
  event.mutable_ready()->add_sandbox("\xc3\xa9");
  event.mutable_ready()->add_sandbox("a\xc3");
  MakeTextsUtf8(event);
  EXPECT_EQ(event.ready().sandbox(0), "\xc3\xa9");
  EXPECT_EQ(event.ready().sandbox(1), "a?");
  event.set_error("\xff");
  MakeTextsUtf8(event);
  v1::SpawnEvent read;
  ASSERT_TRUE(read.ParseFromString(event.SerializeAsString()));
  EXPECT_EQ(read.error(), "?");
}

TEST(CompleteResultTest, WhatADetailQuotesCanBeReadAgain) {
  v1::TrialResult result;
  result.set_outcome(v1::OUTCOME_CRASHED);
  result.set_detail("SIGABRT \xe2\x82");
  result.mutable_environment()->set_governor("\xff");
  CompleteResult(v1::Hello(), 1 << 20, result);
  v1::TrialResult read;
  ASSERT_TRUE(read.ParseFromString(result.SerializeAsString()));
  EXPECT_EQ(read.detail(), "SIGABRT ??");
  EXPECT_EQ(read.environment().governor(), "?");
}

}  // namespace
}  // namespace regatta
