// `regatta up --tls`: a fleet over mutual TLS, from the first command on.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

class SecureFleet {
 public:
  SecureFleet() : up_({"--tls"}) {
    environment_ = {"XDG_STATE_HOME=" + temp_.path()};
  }
  // Waits for `up` to print its address, and for its board.
  bool Ready() {
    return WaitFor(absl::Seconds(30), [this] {
      return !Server().empty() && Devices().size() == 1;
    });
  }
  std::string Server() const {
    const std::string text = ReadFile(up_.dir() + "/address");
    return text.substr(0, text.find('\n'));
  }
  std::string Tracker(int offset = 1) const {
    const auto at = *SplitHostPort(Server());
    return absl::StrCat(at.first, ":", at.second + offset);
  }
  std::string Admin() const { return up_.dir() + "/tls/admin"; }
  std::string Authority() const { return up_.dir() + "/authority"; }

  // With this certificate; "": none.
  ProcessResult Run(std::vector<std::string> arguments, const std::string& tls,
                    absl::Duration limit = absl::Seconds(90)) const {
    arguments.insert(arguments.begin(), Program("regatta"));
    Environment environment = environment_;
    environment.push_back("REGATTA_SERVER=" + Server());
    if (!tls.empty()) environment.push_back("REGATTA_TLS=" + tls);
    return RunProcess(arguments, environment, limit);
  }
  Json Devices() const {
    const ProcessResult result = Run({"devices", "--json"}, Admin());
    const Json document = Json::parse(result.out, nullptr, false);
    return document.is_discarded() ? Json::array() : document["devices"];
  }
  std::string Issue(const std::string& role, const std::string& name) const {
    const std::string dir = absl::StrCat(temp_.path(), "/", role, "-", name);
    const ProcessResult made =
        Run({"certs", "issue", "--authority", Authority(), "--role", role,
             "--name", name, "--out", dir},
            "");
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return dir;
  }
  std::unique_ptr<Process> Agent(const std::string& name,
                                 const std::string& token) const {
    const std::string dir = absl::StrCat(temp_.path(), "/agent-", name);
    return std::make_unique<Process>(
        std::vector<std::string>{Program("regatta-agent"), "--tracker",
                                 Tracker(), "--state", dir + ".state", "--tls",
                                 dir, "--join", token, "--cores", "0",
                                 "--device-class", "second"},
        environment_);
  }
  std::string Logs() const { return up_.Logs(); }

 private:
  TempDir temp_;
  Environment environment_;
  Fleet up_;
};

TEST(SecureFleetTest, TunesOverMutualTlsAndKeepsOthersOut) {
  SecureFleet fleet;
  ASSERT_TRUE(fleet.Ready()) << fleet.Logs();

  const ProcessResult tuned =
      fleet.Run({"tune", "matmul(m=32,n=32,k=32)", "--trials", "6", "--json"},
                fleet.Admin(), absl::Seconds(240));
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err << fleet.Logs();
  EXPECT_EQ(Json::parse(tuned.out)["tasks"][0]["trials"], 6);

  // Nobody without a certificate, whatever is asked.
  const ProcessResult bare = fleet.Run({"devices"}, "");
  EXPECT_EQ(bare.exit_code, 1);
  EXPECT_NE(bare.err.find("--tls"), bare.err.npos) << bare.err;

  // A viewer looks and does not touch; the audit has it.
  const std::string viewer = fleet.Issue("viewer", "vera");
  EXPECT_EQ(fleet.Run({"best", "matmul(m=32,n=32,k=32)"}, viewer).exit_code, 0);
  const ProcessResult denied =
      fleet.Run({"tune", "matmul(m=32,n=32,k=32)", "--trials", "1"}, viewer);
  EXPECT_EQ(denied.exit_code, 1);
  EXPECT_NE(denied.err.find("viewer has no right to it"), denied.err.npos)
      << denied.err;
  EXPECT_EQ(fleet.Run({"audit"}, viewer).exit_code, 1);
  const ProcessResult audit = fleet.Run({"audit", "--json"}, fleet.Admin());
  ASSERT_EQ(audit.exit_code, 0) << audit.err;
  bool submitted = false, refused = false;
  const Json entries = Json::parse(audit.out)["entries"];
  for (const Json& entry : entries) {
    const std::string who = entry["who"], result = entry["result"];
    if (entry["what"] != "TuningService/SubmitJob") continue;
    submitted =
        submitted || (who.find("/admin/") != who.npos && result == "ok");
    refused = refused || (who == "regatta://lab/viewer/vera" &&
                          result.find("refused") == 0);
  }
  EXPECT_TRUE(submitted && refused) << audit.out;

  // A second board joins with a token that is good once.
  TempDir folder;
  const std::string secret = folder.path() + "/token";
  const ProcessResult token =
      fleet.Run({"certs", "token", "--authority", fleet.Authority(), "--role",
                 "agent", "--name", "second-board", "-o", secret},
                "");
  ASSERT_EQ(token.exit_code, 0) << token.err;
  EXPECT_EQ(token.out, "");
  EXPECT_EQ(std::filesystem::status(secret).permissions(),
            std::filesystem::perms(0600));
  const auto second = fleet.Agent("second", "@" + secret);
  EXPECT_TRUE(WaitFor(absl::Seconds(30), [&] {
    return fleet.Devices().size() == 2;
  })) << fleet.Logs();
  const auto third = fleet.Agent("third", "@" + secret);
  const ProcessResult replayed = third->Wait(absl::Seconds(30));
  EXPECT_EQ(replayed.exit_code, 1);
  EXPECT_NE(replayed.err.find("has been used"), replayed.err.npos)
      << replayed.err;

  // Revoked, it is gone within a minute.
  const ProcessResult revoked =
      fleet.Run({"certs", "revoke", "--authority", fleet.Authority(),
                 "agent/second-board", "--reason", "test"},
                "");
  EXPECT_EQ(revoked.exit_code, 0) << revoked.err;
  EXPECT_TRUE(WaitFor(absl::Seconds(60), [&] {
    for (const Json& device : fleet.Devices()) {
      if (device["id"] == "second-board") return device["state"] != "idle";
    }
    return false;
  })) << fleet.Devices();
  EXPECT_TRUE(WaitFor(absl::Seconds(30), [&] {
    const std::string history =
        fleet.Run({"device", "history", "second-board"}, fleet.Admin()).out;
    return history.find("certificate revoked") != history.npos;
  })) << fleet.Logs();
  second->Signal(SIGTERM);
  second->Wait(absl::Seconds(10));

  // A new token brings the board back with the folder that it has.
  const ProcessResult anew =
      fleet.Run({"certs", "token", "--authority", fleet.Authority(), "--role",
                 "agent", "--name", "second-board", "-o", secret + "2"},
                "");
  ASSERT_EQ(anew.exit_code, 0) << anew.err;
  const auto back = fleet.Agent("second", "@" + secret + "2");
  EXPECT_TRUE(WaitFor(absl::Seconds(30), [&] {
    for (const Json& device : fleet.Devices()) {
      if (device["id"] == "second-board") return device["state"] == "idle";
    }
    return false;
  })) << fleet.Devices();
  back->Signal(SIGTERM);
  back->Wait(absl::Seconds(10));
  // gRPC has its say in no log.
  EXPECT_EQ(fleet.Logs().find("ssl_transport_security"), std::string::npos)
      << fleet.Logs();
}

TEST(SecureFleetTest, PlainTextIsNotOfferedToOtherMachines) {
  TempDir temp;
  const ProcessResult up =
      RunProcess({Program("regatta"), "up", "--dir", temp.path() + "/up",
                  "--listen", "0.0.0.0:0"});
  EXPECT_EQ(up.exit_code, 2);
  for (const char* what : {"0.0.0.0:0", "--tls", "--insecure-plaintext"}) {
    EXPECT_NE(up.err.find(what), up.err.npos) << up.err;
  }
  EXPECT_FALSE(std::filesystem::exists(temp.path() + "/up"));
  const std::vector<std::vector<std::string>> daemons = {
      {Program("regatta-tracker"), "--listen", "0.0.0.0:0", "--state",
       temp.path() + "/t"},
      {Program("regatta-server"), "--listen", "0.0.0.0:0", "--log",
       temp.path() + "/log.db"},
      {Program("regatta-agent"), "--tracker", "192.0.2.1:7471", "--state",
       temp.path() + "/a"},
      {Program("regatta"), "devices", "--server", "192.0.2.1:7470"}};
  for (const std::vector<std::string>& daemon : daemons) {
    const ProcessResult refused =
        RunProcess(daemon, {"XDG_STATE_HOME=" + temp.path()});
    EXPECT_EQ(refused.exit_code, 2) << daemon[0] << refused.err;
    EXPECT_NE(refused.err.find("--insecure-plaintext"), refused.err.npos)
        << refused.err;
  }
}

}  // namespace
}  // namespace regatta::testing
