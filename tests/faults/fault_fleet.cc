#include "tests/faults/fault_fleet.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/fleet_checks.h"

namespace regatta::faults {
namespace {

using Json = nlohmann::json;
using testing::Process;
using testing::ProcessResult;
using testing::WaitFor;

}  // namespace

FaultFleet::FaultFleet(const FaultTimes& times,
                       std::vector<std::string> server_arguments)
    : daemons_(dir_.path(), REGATTA_PROGRAM_DIR) {
  daemons_.AddTracker(
      {"--auto-approve-local", "--heartbeat-ms", absl::StrCat(times.heartbeat),
       "--suspect-ms", absl::StrCat(times.suspect), "--lost-ms",
       absl::StrCat(times.lost), "--lease-ms", absl::StrCat(times.lease),
       "--restart-window-ms", "4000"});
  server_arguments.push_back("--no-rebuilds");
  daemons_.AddServer(server_arguments);
  daemons_.StartAll();
  EXPECT_TRUE(daemons_.Ready()) << Said();
}

Process& FaultFleet::StartAgent(const std::string& id, const std::string& cores,
                                const std::string& tracker) {
  if (!daemons_.Has(id)) {
    daemons_.AddAgent(id, {"--cores", cores, "--device-class", kFaultsClass},
                      tracker);
    agents_.push_back(id);
  }
  return daemons_.Start(id);
}

Json FaultFleet::Device(const std::string& id) const {
  const ProcessResult result = Run({"devices", "--json"});
  const Json document = Json::parse(result.out, nullptr, false);
  if (result.exit_code != 0 || document.is_discarded()) return nullptr;
  for (const Json& device : document["devices"]) {
    if (device["id"] == id) return device;
  }
  return nullptr;
}

std::string FaultFleet::Field(const std::string& id,
                              const std::string& field) const {
  const Json device = Device(id);
  return device.is_null() ? "" : device[field].get<std::string>();
}

bool FaultFleet::Becomes(const std::string& id, const std::string& field,
                         const std::string& value, absl::Duration limit) const {
  return WaitFor(limit, [&] { return Field(id, field) == value; });
}

void FaultFleet::Tune(const std::string& workload, int trials) {
  workload_ = workload;
  trials_ = trials;
  tune_ =
      daemons_.Ask({"tune", workload, "--device-class", kFaultsClass,
                    "--trials", absl::StrCat(trials), "--seed", "5", "--json"});
}

Json FaultFleet::Job() const {
  const ProcessResult result = Run({"jobs", "1", "--json"});
  const Json document = Json::parse(result.out, nullptr, false);
  if (result.exit_code != 0 || document.is_discarded()) return nullptr;
  return document;
}

int64_t FaultFleet::Trials() const {
  const Json job = Job();
  return job.is_null() ? -1 : job["tasks"][0]["trials"].get<int64_t>();
}

bool FaultFleet::AwaitTrials(int64_t count, absl::Duration limit) const {
  return WaitFor(limit, [&] { return Trials() >= count; });
}

void FaultFleet::ExpectDone(Losses losses) {
  const ProcessResult result = tune_->Wait(absl::Seconds(100));
  ASSERT_EQ(result.exit_code, 0) << result.err << Said();
  const Json job = Json::parse(result.out, nullptr, false);
  ASSERT_FALSE(job.is_discarded()) << result.out;
  EXPECT_EQ(job["state"], "done") << job;
  const ProcessResult listed = Run({"records", workload_, "--json"});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  const Json records = Json::parse(listed.out)["records"];
  EXPECT_EQ(testing::ExpectEachTrialOnce(records), trials_);
  if (losses == Losses::kNone) {
    for (const Json& record : records) {
      EXPECT_NE(record["outcome"], "agent_lost") << record;
    }
  }
  daemons_.StopAll(absl::Seconds(10));
  for (const std::string& id : agents_) {
    testing::ExpectAcknowledgedAreRecorded(daemons_.StateOf(id), records);
  }
}

}  // namespace regatta::faults
