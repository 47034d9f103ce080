#include "tests/support/fleet_checks.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "device_agent/loop/spool_record.h"
#include "regatta/v1/fleet_service.pb.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

// Trial ids of a spool's results, and those that it was told to forget. What
// was forgotten long ago may be gone from the file.
struct SpoolHistory {
  std::set<std::string> results;
  std::set<std::string> forgotten;
};

SpoolHistory ReadSpool(const std::string& path) {
  const std::string bytes = ReadFile(path);
  EXPECT_EQ(bytes.substr(0, kSpoolHeader.size()), kSpoolHeader) << path;
  SpoolHistory history;
  int64_t at = kSpoolHeaderBytes;
  while (const std::optional<SpoolRecord> record = ParseSpoolRecord(
             std::string_view(bytes).substr(static_cast<size_t>(at)))) {
    at += record->size;
    if (record->type == kSpoolResult) {
      v1::SpooledResult result;
      EXPECT_TRUE(result.ParseFromArray(
          record->payload.data(), static_cast<int>(record->payload.size())));
      history.results.insert(result.result().spec().trial_id());
    } else {
      v1::TrialAck ack;
      EXPECT_TRUE(ack.ParseFromArray(record->payload.data(),
                                     static_cast<int>(record->payload.size())));
      history.forgotten.insert(ack.trial_id());
    }
  }
  EXPECT_EQ(at, static_cast<int64_t>(bytes.size())) << path << " has a tail";
  return history;
}

}  // namespace

int ExpectEachTrialOnce(const nlohmann::json& records) {
  const std::set<std::string> infrastructure = {"agent_lost", "cancelled",
                                                "device_fault", "throttled"};
  std::set<std::string> ids, schedules;
  int candidates = 0;
  for (const auto& record : records) {
    EXPECT_TRUE(ids.insert(record["trial"]).second)
        << record["trial"] << " was recorded twice";
    if (record["kind"] != "candidate" ||
        infrastructure.contains(record["outcome"])) {
      continue;
    }
    ++candidates;
    EXPECT_TRUE(schedules.insert(record["schedule"]).second)
        << record["schedule"] << " was counted twice";
  }
  return candidates;
}

void ExpectAcknowledgedAreRecorded(const std::string& agent_state,
                                   const nlohmann::json& records) {
  std::set<std::string> recorded;
  for (const auto& record : records) recorded.insert(record["trial"]);
  const SpoolHistory history = ReadSpool(agent_state + "/results.spool");
  for (const std::string& trial : history.results) {
    EXPECT_TRUE(history.forgotten.contains(trial))
        << trial << " was never acknowledged";
  }
  for (const std::string& trial : history.forgotten) {
    if (trial.starts_with("~")) continue;  // a canary, which nobody records
    EXPECT_TRUE(recorded.contains(trial))
        << trial << " was acknowledged and is not recorded";
  }
}

}  // namespace regatta::testing
