// The operator's hold on a fleet of real processes.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

const char kWorkload[] = "matmul(m=96,n=96,k=96)";

class Operator : public ::testing::Test {
 protected:
  Operator() : fleet_({"--no-auto-approve"}) {}

  Json Board() const {
    const Json devices = fleet_.Document({"devices"})["devices"];
    EXPECT_EQ(devices.size(), 1u);
    return devices.empty() ? Json() : devices[0];
  }
  // `regatta device VERB ID ...`, which must succeed.
  Json Device(const std::string& verb, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"device", verb};
    if (verb != "history") arguments.push_back(id_);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return fleet_.Document(arguments);
  }
  bool Becomes(const std::string& axis, const std::string& state,
               absl::Duration limit = absl::Seconds(60)) const {
    return WaitFor(limit, [&] { return Board()[axis]["state"] == state; });
  }
  std::string WaitingFor(int64_t job) const {
    const ProcessResult result =
        fleet_.Run({"jobs", std::to_string(job), "--json"});
    if (result.exit_code != 0) return "";  // not submitted yet
    const Json reason = Json::parse(result.out)["reason"];
    return reason.is_string() ? reason.get<std::string>() : "";
  }

  Fleet fleet_;
  std::string id_;
};

TEST_F(Operator, ApprovesDrainsQuarantinesAndReservesABoardDuringAJob) {
  ASSERT_TRUE(fleet_.Ready());
  id_ = Board()["id"];
  const std::string device_class = Board()["device_class"];
  EXPECT_EQ(Board()["trust"]["state"], "pending");
  EXPECT_EQ(Board()["state"], "pending");

  auto tune = fleet_.Start({"tune", kWorkload, "--device-class", device_class,
                            "--trials", "100000", "--seed", "1", "--json"});
  ASSERT_TRUE(WaitFor(absl::Seconds(30), [&] {
    return WaitingFor(1).find("is waiting for approval") != std::string::npos;
  })) << WaitingFor(1);
  EXPECT_EQ(fleet_.TrialsOf(1), 0);

  // Approved, it is proven by canaries first, then works.
  Device("approve");
  ASSERT_TRUE(Becomes("trust", "healthy")) << Board().dump(1) << fleet_.Logs();
  ASSERT_TRUE(WaitFor(absl::Seconds(60), [&] {
    return fleet_.TrialsOf(1) >= 3;
  })) << fleet_.Logs();

  // Drained within a minute, its work given back, and the reason is shown.
  Device("drain", {"--reason", "fan swap", "--wait"});
  EXPECT_EQ(Board()["operator"]["state"], "maintenance");
  EXPECT_EQ(Board()["operator"]["reason"], "fan swap");
  EXPECT_EQ(Board()["running"], 0);
  const int64_t drained_at = fleet_.TrialsOf(1);
  EXPECT_TRUE(WaitFor(absl::Seconds(30), [&] {
    return WaitingFor(1).find("fan swap") != std::string::npos;
  })) << WaitingFor(1);
  EXPECT_LE(fleet_.TrialsOf(1), drained_at + 1)
      << "one may have been on its way";
  Device("resume");
  ASSERT_TRUE(WaitFor(absl::Seconds(60),
                      [&] { return fleet_.TrialsOf(1) > drained_at + 3; }))
      << Board().dump(1) << fleet_.Logs();

  // A reservation has the board within ten seconds, and the five that an agent
  // has to stop what it does not end by then.
  const SteadyTime asked = RealClock().Steady();
  Device("reserve", {"--reason", "debug", "--for", "10m", "--wait"});
  EXPECT_LT(RealClock().Steady() - asked, absl::Seconds(16));
  EXPECT_EQ(Board()["state"], "reserved");
  EXPECT_EQ(Board()["running"], 0);
  Device("release");

  ASSERT_TRUE(Becomes("trust", "healthy")) << Board().dump(1);
  Device("quarantine", {"--reason", "odd times"});
  EXPECT_EQ(Board()["state"], "quarantined");
  Device("release");
  ASSERT_TRUE(Becomes("trust", "healthy")) << Board().dump(1);
  Device("label", {"--set", "rack=2"});
  EXPECT_EQ(Board()["labels"]["rack"], "2");

  std::vector<std::string> what;
  const Json history = Device("history")["events"];
  for (const Json& event : history) {
    if (event["by"] != "tracker") what.push_back(event["what"]);
  }
  EXPECT_EQ(what, (std::vector<std::string>{"approve", "drain", "resume",
                                            "reserve", "release", "quarantine",
                                            "release", "label rack=2"}));
  fleet_.Document({"cancel", "1"});
  tune->Wait(absl::Seconds(30));
  // No canary is ever recorded.
  const Json records =
      fleet_.Document({"records", "matmul(m=256,n=256,k=256)"})["records"];
  EXPECT_TRUE(records.empty()) << records.dump(1);
  EXPECT_EQ(fleet_.Stop().exit_code, 0);
}

TEST_F(Operator, TheTrackerRemembersOverARestart) {
  ASSERT_TRUE(fleet_.Ready());
  id_ = Board()["id"];
  Device("approve");
  ASSERT_TRUE(Becomes("trust", "healthy"));
  Device("maintenance", {"--reason", "smoke"});
  kill(fleet_.DaemonPid("tracker"), SIGKILL);
  ASSERT_TRUE(WaitFor(absl::Seconds(30), [&] {
    const ProcessResult result = fleet_.Run({"devices", "--json"});
    const Json document = Json::parse(result.out, nullptr, false);
    return result.exit_code == 0 && !document["devices"].empty() &&
           document["devices"][0]["presence"] == "online";
  })) << fleet_.Logs();
  EXPECT_EQ(Board()["operator"]["reason"], "smoke");
  EXPECT_EQ(Board()["trust"]["state"], "healthy");
}

TEST_F(Operator, BadCommandsSayWhatIsWrong) {
  ASSERT_TRUE(fleet_.Ready());
  id_ = Board()["id"];
  for (const auto& [arguments, code, text] :
       std::vector<std::tuple<std::vector<std::string>, int, std::string>>{
           {{"device"}, 2, "a subcommand is required"},
           {{"device", "drain", id_}, 2, "--reason"},
           {{"device", "approve"}, 2, "no device is named"},
           {{"device", "approve", "nobody"}, 1, "no device nobody; there are"},
           {{"device", "reserve", id_, "--reason", "x"},
            1,
            "waits for approval"},
           {{"device", "drain", id_, "--reason", "x", "--for", "soon"},
            2,
            "'soon' is no duration"},
           {{"device", "drain", id_, "--reason", "x", "--until",
             "2001-01-01 00:00"},
            2,
            "is over"},
           {{"device", "label", id_, "--set", "rack"}, 2, "is no label"},
           {{"device", "power-cycle", id_, "--reason", "x"},
            1,
            "has no power hook"}}) {
    const ProcessResult result = fleet_.Run(arguments);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
  }
  EXPECT_EQ(Board()["trust"]["state"], "pending");
}

}  // namespace
}  // namespace regatta::testing
