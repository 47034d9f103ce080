// That what chaos looks for would be found.
#include <nlohmann/json.hpp>
#include <string>

#include "gtest/gtest.h"
#include "regatta/v1/fleet_service.pb.h"
#include "tests/chaos/ack_tap.h"
#include "tests/support/timed_runs.h"

namespace regatta::testing {
namespace {

using Json = nlohmann::json;

Json Record(const std::string& trial, const std::string& device,
            const std::string& cpus, int64_t start, int64_t end,
            const std::string& kind = "candidate") {
  return {{"trial", trial},
          {"device", device},
          {"boot_id", "boot"},
          {"cpu_list", cpus},
          {"kind", kind},
          {"timed_start_boot_ns", start},
          {"timed_end_boot_ns", end}};
}

TEST(CompareRunsTest, FindsTwoThatSharedAProcessor) {
  const Json records = {Record("1/0/1", "a", "0-1", 100, 200),
                        Record("1/0/2", "b", "1", 200, 300),
                        Record("1/0/3", "b", "2", 150, 250),
                        Record("1/0/4", "c", "1,3", 299, 400)};
  const RunPairs pairs = CompareRuns(TimedRuns(records));
  EXPECT_EQ(pairs.compared, 3);  // all but those with the third
  ASSERT_EQ(pairs.wrong.size(), 1u);
  EXPECT_EQ(pairs.wrong[0], "1/0/4 on c 299-400 overlaps 1/0/2 on b 200-300");
}

TEST(CompareRunsTest, LeavesOutWhatTakesTurnsAndWhatWasNeverTimed) {
  Json never = Record("1/0/3", "a", "0", 0, 0);
  never["timed_start_boot_ns"] = nullptr;
  const Json records = {Record("1/0/1", "a", "0", 100, 200, "confirm"),
                        Record("1/0/2", "a", "0", 150, 250, "race"), never};
  EXPECT_EQ(CompareRuns(TimedRuns(records)).compared, 0);
}

TEST(CompareRunsTest, FindsOneThatEndsBeforeItStarts) {
  const Json records = Json::array({Record("1/0/1", "a", "0", 200, 200)});
  EXPECT_EQ(CompareRuns(TimedRuns(records)).wrong.size(), 1u);
}

// As a tracker writes it: one message, one frame.
std::string Frame(const v1::TrackerMessage& message) {
  const std::string bytes = message.SerializeAsString();
  const auto length = static_cast<char>(bytes.size());
  const auto frame = static_cast<char>(bytes.size() + 5);
  return std::string{'\0', '\0', frame, '\0', '\0', '\0', '\0', '\0', '\1'} +
         std::string{'\0', '\0', '\0', '\0', length} + bytes;
}

TEST(AckTapTest, KnowsWhatWasStored) {
  v1::TrackerMessage message;
  const auto add = [&](const std::string& trial, v1::AckStatus status) {
    v1::TrialAck& ack = *message.mutable_result_ack()->add_acks();
    ack.set_trial_id(trial);
    ack.set_status(status);
  };
  add("1/0/1", v1::ACK_STATUS_STORED);
  add("1/0/2", v1::ACK_STATUS_DUPLICATE);
  add("1/0/3", v1::ACK_STATUS_REJECTED);
  add("~canary/7/sum", v1::ACK_STATUS_STORED);
  AckTap taps;
  const FaultProxy::Tap tap = taps.Tap();
  using Direction = FaultProxy::Direction;
  const std::string bytes = Frame(message);
  tap(1, Direction::kFromTarget, bytes.substr(0, 20));
  EXPECT_TRUE(taps.stored().empty());
  tap(2, Direction::kFromTarget, bytes);  // another connection
  EXPECT_EQ(taps.stored(), (std::set<std::string>{"1/0/1", "1/0/2"}));
  tap(1, Direction::kFromTarget, bytes.substr(20));
  tap(1, Direction::kToTarget, bytes);  // an agent acknowledges nothing
  EXPECT_EQ(taps.acks(), 4);
  EXPECT_EQ(taps.rejected(), 2);
  EXPECT_EQ(taps.unread(), 0);
}

}  // namespace
}  // namespace regatta::testing
