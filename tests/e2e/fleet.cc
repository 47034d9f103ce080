#include "tests/e2e/fleet.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace regatta::testing {

std::string Program(const std::string& name) {
  return std::string(REGATTA_PROGRAM_DIR) + "/" + name;
}

Fleet::Fleet(std::vector<std::string> arguments) : dir_(temp_.path() + "/up") {
  std::vector<std::string> argv = {
      Program("regatta"), "up", "--dir", dir_, "--listen", "127.0.0.1:0"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  up_ = std::make_unique<Process>(argv, Environment{});
}

Fleet::~Fleet() { Stop(); }

ProcessResult Fleet::Stop() {
  up_->Signal(SIGTERM);
  return up_->Wait(absl::Seconds(20));
}

std::string Fleet::server() const {
  std::string address = ReadFile(dir_ + "/address");
  if (!address.empty()) address.pop_back();
  return address;
}

std::string Fleet::tracker() const {
  const std::string address = server();
  const size_t colon = address.rfind(':');
  return absl::StrCat(address.substr(0, colon), ":",
                      std::stoi(address.substr(colon + 1)) + 1);
}

std::string Fleet::Logs() const {
  std::string text;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(dir_ + "/logs", error)) {
    absl::StrAppend(&text, "--- ", entry.path().filename().string(), "\n",
                    ReadFile(entry.path()));
  }
  return text;
}

bool Fleet::Ready() {
  const bool up = WaitFor(absl::Seconds(20), [this] {
    return !up_->Running() || !server().empty();
  });
  EXPECT_TRUE(up && up_->Running()) << Logs();
  if (!up || !up_->Running()) return false;
  const bool registered = WaitFor(absl::Seconds(20), [this] {
    const ProcessResult result = Run({"devices", "--json"});
    if (result.exit_code != 0) return false;
    return !Json::parse(result.out)["devices"].empty();
  });
  EXPECT_TRUE(registered) << Logs();
  return registered;
}

ProcessResult Fleet::Run(std::vector<std::string> arguments,
                         absl::Duration limit) const {
  arguments.insert(arguments.begin(), Program("regatta"));
  return RunProcess(arguments, {"REGATTA_SERVER=" + server()}, limit);
}

std::unique_ptr<Process> Fleet::Start(
    std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), Program("regatta"));
  return std::make_unique<Process>(arguments,
                                   Environment{"REGATTA_SERVER=" + server()});
}

Json Fleet::Document(std::vector<std::string> arguments,
                     absl::Duration limit) const {
  arguments.push_back("--json");
  const ProcessResult result = Run(arguments, limit);
  EXPECT_EQ(result.exit_code, 0) << absl::StrJoin(arguments, " ") << "\n"
                                 << result.err << Logs();
  Json document = Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(document.is_discarded()) << result.out;
  return document;
}

int64_t Fleet::TrialsOf(int64_t job) const {
  const ProcessResult result =
      Run({"jobs", absl::StrCat(job), "--json"}, absl::Seconds(10));
  const Json document =
      Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  if (result.exit_code != 0 || document.is_discarded()) return -1;
  return document["tasks"][0]["trials"].get<int64_t>();
}

pid_t Fleet::DaemonPid(const std::string& daemon) const {
  const std::vector<pid_t> pids = ChildrenOf(up_->pid(), "regatta-" + daemon);
  return pids.empty() ? -1 : pids.front();
}

}  // namespace regatta::testing
