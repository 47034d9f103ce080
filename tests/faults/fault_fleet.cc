#include "tests/faults/fault_fleet.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tests/support/fleet_checks.h"

namespace regatta::faults {
namespace {

using Json = nlohmann::json;
using testing::Process;
using testing::ProcessResult;
using testing::WaitFor;

std::string Program(const std::string& name) {
  return std::string(REGATTA_PROGRAM_DIR) + "/" + name;
}

std::string Loopback(int port) { return absl::StrCat("127.0.0.1:", port); }

}  // namespace

std::vector<std::string> UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cores.push_back(absl::StrCat(cpu));
  }
  return cores;
}

FaultFleet::FaultFleet(const FaultTimes& times)
    : tracker_port_(testing::FreePort()), server_port_(testing::FreePort()) {
  tracker_ = std::make_unique<Process>(
      std::vector<std::string>{
          Program("regatta-tracker"), "--listen", tracker_address(),
          "--auto-approve-local", "--state", dir_.path() + "/tracker",
          "--heartbeat-ms", absl::StrCat(times.heartbeat), "--suspect-ms",
          absl::StrCat(times.suspect), "--lost-ms", absl::StrCat(times.lost),
          "--lease-ms", absl::StrCat(times.lease), "--restart-window-ms",
          "4000"},
      testing::Environment{});
  server_ = std::make_unique<Process>(
      std::vector<std::string>{Program("regatta-server"), "--listen",
                               Loopback(server_port_), "--tracker",
                               tracker_address(), "--log",
                               dir_.path() + "/tuning.db", "--no-rebuilds"},
      testing::Environment{});
  EXPECT_TRUE(WaitFor(absl::Seconds(20), [this] {
    return Run({"devices"}).exit_code == 0;
  })) << Said();
}

FaultFleet::~FaultFleet() { Stop(); }

void FaultFleet::Stop() {
  tune_.reset();
  for (const auto& [id, agent] : agents_) {
    agent->Signal(SIGCONT);
    agent->Signal(SIGTERM);
  }
  for (const auto& [id, agent] : agents_) agent->Wait(absl::Seconds(10));
  for (Process* daemon : {server_.get(), tracker_.get()}) {
    daemon->Signal(SIGCONT);
    daemon->Signal(SIGTERM);
    daemon->Wait(absl::Seconds(10));
  }
}

std::string FaultFleet::tracker_address() const {
  return Loopback(tracker_port_);
}

Process& FaultFleet::StartAgent(const std::string& id, const std::string& cores,
                                const std::string& tracker) {
  agents_[id] = std::make_unique<Process>(
      std::vector<std::string>{Program("regatta-agent"), "--tracker",
                               tracker.empty() ? tracker_address() : tracker,
                               "--id", id, "--cores", cores, "--device-class",
                               kFaultsClass, "--state", AgentState(id),
                               "--lock-folder", dir_.path()},
      testing::Environment{});
  return *agents_[id];
}

ProcessResult FaultFleet::Run(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), Program("regatta"));
  return testing::RunProcess(arguments,
                             {"REGATTA_SERVER=" + Loopback(server_port_)},
                             absl::Seconds(30));
}

std::string FaultFleet::Field(const std::string& id,
                              const std::string& field) const {
  const ProcessResult result = Run({"devices", "--json"});
  const Json document = Json::parse(result.out, nullptr, false);
  if (result.exit_code != 0 || document.is_discarded()) return "";
  for (const Json& device : document["devices"]) {
    if (device["id"] == id) return device[field].get<std::string>();
  }
  return "";
}

bool FaultFleet::Becomes(const std::string& id, const std::string& field,
                         const std::string& value, absl::Duration limit) const {
  return WaitFor(limit, [&] { return Field(id, field) == value; });
}

void FaultFleet::Tune(const std::string& workload, int trials) {
  workload_ = workload;
  trials_ = trials;
  tune_ = std::make_unique<Process>(
      std::vector<std::string>{Program("regatta"), "tune", workload,
                               "--device-class", kFaultsClass, "--trials",
                               absl::StrCat(trials), "--seed", "5", "--json"},
      testing::Environment{"REGATTA_SERVER=" + Loopback(server_port_)});
}

int64_t FaultFleet::Trials() const {
  const ProcessResult result = Run({"jobs", "1", "--json"});
  const Json document = Json::parse(result.out, nullptr, false);
  if (result.exit_code != 0 || document.is_discarded()) return -1;
  return document["tasks"][0]["trials"].get<int64_t>();
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
  Stop();
  for (const auto& [id, agent] : agents_) {
    testing::ExpectAcknowledgedAreRecorded(AgentState(id), records);
  }
}

std::string FaultFleet::Said() {
  Stop();
  std::string said;
  const auto add = [&](const std::string& name, Process& process) {
    const std::string err = process.Wait(absl::ZeroDuration()).err;
    absl::StrAppend(
        &said, "--- ", name, "\n",
        err.substr(err.size() - std::min<size_t>(err.size(), 3000)));
  };
  add("tracker", *tracker_);
  add("server", *server_);
  for (const auto& [id, agent] : agents_) add(id, *agent);
  return said;
}

}  // namespace regatta::faults
