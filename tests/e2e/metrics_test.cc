// Metrics of real daemons over real HTTP, and their logs as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/e2e/fleet.h"
#include "tests/support/scrape.h"

namespace regatta::testing {
namespace {

using ::testing::HasSubstr;

// "metrics on HOST:PORT" of a daemon's log; "": not there.
std::string PageOf(const Fleet& fleet, const std::string& daemon) {
  std::istringstream log(
      ReadFile(fleet.dir() + "/logs/regatta-" + daemon + ".log"));
  constexpr std::string_view kBegin = "metrics on ";
  for (std::string line; std::getline(log, line);) {
    if (line.starts_with(kBegin)) return line.substr(kBegin.size());
  }
  return "";
}

// What the daemons stored of the test's job.
struct Done {
  double stored = 0, ok = 0;  // trials; of these with outcome ok
  std::string grade;          // of the test's question
};

void CheckServer(const std::string& of_server, const Done& done) {
  const auto& [stored, ok, grade] = done;
  EXPECT_EQ(Sum(of_server, "regatta_server_trials_total"), stored);
  EXPECT_GT(ok, 0);
  EXPECT_EQ(Value(of_server, "regatta_server_trials_total{outcome=\"ok\"}"),
            ok);
  EXPECT_EQ(
      Value(of_server, "regatta_server_results_total{verdict=\"stored\"}"),
      stored);
  const double commits =
      *Value(of_server, "regatta_server_commit_seconds_count");
  EXPECT_GE(commits, 1);
  EXPECT_LE(commits, stored);
  EXPECT_GT(*Value(of_server, "regatta_server_commit_seconds_sum"), 0);
  // Of this test's question; the job asks by itself.
  EXPECT_GE(
      *Value(of_server, absl::StrCat("regatta_server_lookups_total{grade=\"",
                                     grade, "\"}")),
      1);
  EXPECT_EQ(Value(of_server, "regatta_server_jobs{state=\"running\"}"), 0);
  EXPECT_EQ(Value(of_server, "regatta_server_tracker_attached"), 1);
  EXPECT_GT(*Value(of_server, "regatta_server_log_bytes"), 4096);
  EXPECT_EQ(Value(of_server, "regatta_server_unstored_results"), 0);
  EXPECT_THAT(of_server,
              HasSubstr("regatta_build_info{daemon=\"regatta-server\""));
}

void CheckTracker(const std::string& of_tracker, double stored) {
  EXPECT_EQ(Sum(of_tracker, "regatta_tracker_results_total"), stored);
  EXPECT_EQ(Value(of_tracker, "regatta_tracker_connected_agents"), 1);
  EXPECT_EQ(Value(of_tracker, "regatta_tracker_connected_servers"), 1);
  EXPECT_EQ(Value(of_tracker,
                  "regatta_tracker_devices_by_presence"
                  "{presence=\"online\"}"),
            1);
  EXPECT_EQ(Value(of_tracker,
                  "regatta_tracker_devices_by_presence"
                  "{presence=\"lost\"}"),
            0);
  EXPECT_EQ(Sum(of_tracker, "regatta_tracker_devices_by_trust"), 1);
  EXPECT_EQ(Value(of_tracker,
                  "regatta_tracker_devices_by_operator_state"
                  "{operator_state=\"normal\"}"),
            1);
  EXPECT_EQ(Sum(of_tracker, "regatta_tracker_queued_assignments"), 0);
  EXPECT_EQ(Sum(of_tracker, "regatta_tracker_leased_assignments"), 0);
  EXPECT_EQ(Value(of_tracker, "regatta_tracker_lease_expiries_total"), 0);
  EXPECT_GE(*Value(of_tracker, "regatta_tracker_assignments_total"), 1);
}

void CheckAgent(const std::string& of_agent, const Done& done) {
  const auto& [stored, ok, grade] = done;
  EXPECT_EQ(Sum(of_agent, "regatta_agent_trials_total"), stored);
  EXPECT_EQ(Value(of_agent, "regatta_agent_trials_total{outcome=\"ok\"}"), ok);
  EXPECT_GE(
      *Value(of_agent, "regatta_agent_result_acks_total{verdict=\"stored\"}"),
      stored);
  EXPECT_EQ(Value(of_agent, "regatta_agent_spooled_results"), 0);
  EXPECT_EQ(Value(of_agent, "regatta_agent_held_assignments"), 0);
  EXPECT_EQ(Value(of_agent, "regatta_agent_tracker_connected"), 1);
  EXPECT_EQ(Value(of_agent, "regatta_agent_connections_total"), 1);
  EXPECT_GT(Sum(of_agent, "regatta_agent_device_held_seconds_total"), 0);
  EXPECT_GE(*Value(of_agent, "regatta_agent_build_seconds_count"), 1);
  EXPECT_GE(*Value(of_agent,
                   "regatta_agent_workers_started_total"
                   "{role=\"run\"}"),
            ok);
}

// docs/metrics.md has a row for each.
void CheckDocumented(const std::vector<std::string>& pages) {
  const std::string document =
      ReadFile(std::string(REGATTA_SOURCE_DIR) + "/docs/metrics.md");
  int names = 0;
  for (const std::string& page : pages) {
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      constexpr std::string_view kType = "# TYPE regatta_";
      if (!line.starts_with(kType)) continue;
      ++names;
      const std::string name = line.substr(7, line.find(' ', kType.size()) - 7);
      EXPECT_THAT(document, HasSubstr("`" + name + "`"));
    }
  }
  EXPECT_GT(names, 30);
}

// Every line of the logs is JSON with the common fields, without a warning, and
// one tells of the device's maintenance.
void CheckLogs(const Fleet& fleet, const std::string& device) {
  bool told = false;
  int lines = 0;
  for (const char* daemon : {"server", "tracker", "agent"}) {
    std::istringstream log(
        ReadFile(absl::StrCat(fleet.dir(), "/logs/regatta-", daemon, ".log")));
    for (std::string line; std::getline(log, line);) {
      if (line.empty() || line[0] != '{') continue;  // standard output
      const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      ASSERT_FALSE(json.is_discarded()) << line;
      ++lines;
      for (const char* field :
           {"ts", "severity", "daemon", "source", "message"}) {
        EXPECT_TRUE(json.contains(field)) << line;
      }
      EXPECT_THAT(json["daemon"].get<std::string>(), HasSubstr("regatta-"));
      EXPECT_THAT(json["source"].get<std::string>(), HasSubstr(".cc:"));
      told |= json.value("event", "") == "device_state" &&
              json.value("device", "") == device &&
              json.value("state", "") == "maintenance" &&
              json.value("reason", "") == "fan";
    }
    EXPECT_THAT(
        ReadFile(absl::StrCat(fleet.dir(), "/logs/regatta-", daemon, ".log")),
        ::testing::Not(HasSubstr("warning regatta-")));
  }
  EXPECT_TRUE(told) << fleet.Logs();
  EXPECT_GT(lines, 3);
}

TEST(Metrics, EveryDaemonTellsWhatAJobDid) {
#ifndef REGATTA_HAVE_METRICS
  GTEST_SKIP() << "built without prometheus-cpp (package prometheus-cpp-dev)";
#endif
  Fleet fleet({"--metrics", "127.0.0.1:0", "--log-format", "json"});
  ASSERT_TRUE(fleet.Ready());
  const std::string server = PageOf(fleet, "server");
  const std::string tracker = PageOf(fleet, "tracker");
  const std::string agent = PageOf(fleet, "agent");
  ASSERT_FALSE(server.empty() || tracker.empty() || agent.empty())
      << fleet.Logs();
  EXPECT_EQ(Sum(Scrape(server), "regatta_server_trials_total"), 0);

  const Json job = fleet.Document(
      {"tune", "matmul(m=64,n=64,k=64)", "--trials", "8", "--seed", "3"});
  EXPECT_EQ(job["state"], "done");
  const Json records = fleet.Document({"records", "matmul(m=64,n=64,k=64)"});
  Done done;
  done.stored = static_cast<double>(records["records"].size());
  for (const Json& record : records["records"]) {
    done.ok += record["outcome"] == "ok";
  }
  done.grade = fleet.Document({"best", "matmul(m=64,n=64,k=64)"})["grade"];

  const std::string of_server = Scrape(server), of_tracker = Scrape(tracker),
                    of_agent = Scrape(agent);
  CheckServer(of_server, done);
  CheckTracker(of_tracker, done.stored);
  CheckAgent(of_agent, done);
  CheckDocumented({of_server, of_tracker, of_agent});

  // An operator's word shows, on the page and in the log.
  const std::string device = fleet.Document({"devices"})["devices"][0]["id"];
  EXPECT_EQ(
      fleet.Run({"device", "maintenance", device, "--reason", "fan"}).exit_code,
      0);
  EXPECT_EQ(Value(Scrape(tracker),
                  "regatta_tracker_devices_by_operator_state"
                  "{operator_state=\"maintenance\"}"),
            1);
  CheckLogs(fleet, device);
}

TEST(Metrics, NothingIsServedToOtherMachinesUnlessAFlagSaysSo) {
  for (const char* daemon :
       {"regatta-server", "regatta-tracker", "regatta-agent"}) {
    TempDir dir;
    std::vector<std::string> argv = {Program(daemon), "--metrics", "0.0.0.0:0"};
    if (std::string_view(daemon) == "regatta-server") {
      argv.insert(argv.end(), {"--log", dir.path() + "/log"});
    } else {
      argv.insert(argv.end(), {"--state", dir.path() + "/state"});
    }
    const ProcessResult refused = RunProcess(argv);
    EXPECT_EQ(refused.exit_code, 2) << daemon << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("--metrics-insecure-plaintext"));
    EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << daemon;
  }
}

TEST(Metrics, ATokenThatIsRefusedStandsInNoLog) {
  TempDir dir;
  const std::string secret(32, 'a');
  const std::string token = "rgt1-" + secret + "-" + std::string(64, 'b');
  for (const char* format : {"text", "json"}) {
    const ProcessResult refused =
        RunProcess({Program("regatta-agent"), "--tracker", "127.0.0.1:1",
                    "--tls", dir.path() + "/tls", "--join", token, "--state",
                    dir.path() + "/state", "--log-format", format},
                   {}, absl::Seconds(30));
    EXPECT_NE(refused.exit_code, 0);
    EXPECT_FALSE(refused.err.empty());
    EXPECT_EQ(refused.err.find(secret), std::string::npos) << refused.err;
    EXPECT_EQ(refused.out.find(secret), std::string::npos);
  }
}

}  // namespace
}  // namespace regatta::testing
