#include "tests/fleet_sim/daemons.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace regatta::fleet_sim {
namespace {

constexpr absl::Duration kStopLimit = absl::Seconds(60);

std::vector<std::string> Command(const std::string& program,
                                 std::vector<std::string> arguments,
                                 const std::vector<std::string>& more) {
  arguments.insert(arguments.begin(),
                   std::string(REGATTA_PROGRAM_DIR) + "/" + program);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

ProcessCost CostOf(pid_t pid) {
  ProcessCost cost;
  const std::string proc = absl::StrCat("/proc/", pid);
  std::istringstream status(testing::ReadFile(proc + "/status"));
  for (std::string name; status >> name;) {
    if (name == "VmRSS:") status >> cost.rss_bytes;
    if (name == "VmHWM:") status >> cost.peak_bytes;
    if (name == "Threads:") status >> cost.threads;
  }
  cost.rss_bytes *= 1024;
  cost.peak_bytes *= 1024;
  const std::string stat = testing::ReadFile(proc + "/stat");
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return cost;
  std::istringstream fields(stat.substr(end + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  int64_t user = 0, system = 0;
  fields >> user >> system;
  cost.cpu = absl::Seconds(static_cast<double>(user + system) /
                           static_cast<double>(sysconf(_SC_CLK_TCK)));
  return cost;
}

Daemons::Daemons(std::string dir, std::vector<std::string> tracker_arguments,
                 std::vector<std::string> server_arguments)
    : dir_(std::move(dir)),
      tracker_arguments_(std::move(tracker_arguments)),
      server_arguments_(std::move(server_arguments)),
      tracker_port_(testing::FreePort()),
      server_port_(testing::FreePort()) {}

std::string Daemons::tracker() const {
  return absl::StrCat("127.0.0.1:", tracker_port_);
}

std::string Daemons::server() const {
  return absl::StrCat("127.0.0.1:", server_port_);
}

void Daemons::StartTracker() {
  tracker_ = std::make_unique<testing::Process>(
      Command("regatta-tracker",
              {"--listen", tracker(), "--state", dir_ + "/tracker"},
              tracker_arguments_),
      testing::Environment{});
}

void Daemons::StartServer() {
  server_ = std::make_unique<testing::Process>(
      Command("regatta-server",
              {"--listen", server(), "--tracker", tracker(), "--log", log(),
               "--no-rebuilds"},
              server_arguments_),
      testing::Environment{});
}

void Daemons::KillTracker() {
  tracker_->Signal(SIGKILL);
  tracker_->Wait(kStopLimit);
}

bool Daemons::StopTracker() {
  tracker_->Signal(SIGTERM);
  return tracker_->Wait(kStopLimit).exit_code == 0;
}

bool Daemons::StopServer() {
  server_->Signal(SIGTERM);
  return server_->Wait(kStopLimit).exit_code == 0;
}

std::string Daemons::Death() {
  for (auto* process : {tracker_.get(), server_.get()}) {
    if (process == nullptr || process->Running()) continue;
    const testing::ProcessResult end = process->Wait(absl::ZeroDuration());
    return absl::StrCat(
        process == tracker_.get() ? "the tracker" : "the server",
        " ended with status ", end.exit_code, ", signal ", end.signal, ":\n",
        end.err.substr(end.err.size() -
                       std::min<size_t>(end.err.size(), 2000)));
  }
  return "";
}

}  // namespace regatta::fleet_sim
