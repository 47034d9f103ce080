#include "server/job/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

TEST(Checkpoint, ANumberThatIsNotWholeIsRefused) {
  TaskCheckpoint task;
  task.target = "cpu";
  task.gain_asked_ns = 4711;
  const std::string text = PrintCheckpoint({&task, 1});
  const auto whole = ParseCheckpoint(text);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->front().gain_asked_ns, 4711);
  // The first is beyond every integer, though it is written as one.
  for (const std::string number :
       {"11111111111111111111111110", "1e25", "0.5", "\"4711\"", "true"}) {
    const auto parsed =
        ParseCheckpoint(absl::StrReplaceAll(text, {{"4711", number}}));
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kDataLoss) << number;
    EXPECT_THAT(std::string(parsed.status().message()),
                HasSubstr("whole number"));
  }
}

}  // namespace
}  // namespace regatta
