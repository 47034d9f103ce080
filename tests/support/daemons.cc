#include "tests/support/daemons.h"

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace regatta::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLastWords = 3000;

std::string Loopback(int port) { return absl::StrCat("127.0.0.1:", port); }

}  // namespace

std::vector<std::string> UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CHECK(sched_getaffinity(0, sizeof set, &set) == 0) << "no processors";
  std::vector<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cores.push_back(absl::StrCat(cpu));
  }
  return cores;
}

Daemons::Daemons(std::string folder, std::string programs)
    : folder_(std::move(folder)),
      tracker_port_(FreePort()),
      server_port_(FreePort()) {
  fs::create_directories(LogsFolder());
  fs::create_directory(folder_ + "/locks");
  if (!fs::exists(this->programs())) {
    fs::create_directory_symlink(programs, this->programs());
  }
}

Daemons::~Daemons() { StopAll(absl::Seconds(10)); }

std::string Daemons::tracker() const { return Loopback(tracker_port_); }
std::string Daemons::server() const { return Loopback(server_port_); }

void Daemons::Add(const std::string& name, const std::string& program,
                  std::vector<std::string> arguments,
                  const std::vector<std::string>& more) {
  CHECK(!Has(name)) << name << " was added before";
  fs::create_directory(StateOf(name));
  names_.push_back(name);
  std::vector<std::string>& argv = daemons_[name].argv;
  argv = {"/bin/sh", "-c",
          absl::StrCat("exec \"$0\" \"$@\" >>", LogsFolder(), "/", name,
                       ".log 2>&1"),
          programs() + "/" + program};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  argv.insert(argv.end(), more.begin(), more.end());
}

void Daemons::AddTracker(const std::vector<std::string>& more) {
  Add("tracker", "regatta-tracker",
      {"--listen", tracker(), "--state", StateOf("tracker")}, more);
}

void Daemons::AddServer(const std::vector<std::string>& more,
                        const std::string& tracker) {
  Add("server", "regatta-server",
      {"--listen", server(), "--tracker",
       tracker.empty() ? this->tracker() : tracker, "--log", log()},
      more);
}

void Daemons::AddAgent(const std::string& id,
                       const std::vector<std::string>& more,
                       const std::string& tracker) {
  Add(id, "regatta-agent",
      {"--tracker", tracker.empty() ? this->tracker() : tracker, "--id", id,
       "--state", StateOf(id), "--worker-dir", programs(), "--lock-folder",
       folder_ + "/locks"},
      more);
}

Process& Daemons::Start(const std::string& name) {
  CHECK(!Running(name)) << name << " runs already";
  Daemon& daemon = daemons_.at(name);
  daemon.process = std::make_unique<Process>(daemon.argv, Environment{});
  return *daemon.process;
}

void Daemons::StartAll() {
  for (const std::string& name : names_) {
    if (!Running(name)) Start(name);
  }
}

bool Daemons::Running(const std::string& name) const {
  const Daemon& daemon = daemons_.at(name);
  return daemon.process != nullptr && daemon.process->Running();
}

Process& Daemons::process(const std::string& name) const {
  const Daemon& daemon = daemons_.at(name);
  CHECK(daemon.process != nullptr) << name << " was never started";
  return *daemon.process;
}

void Daemons::Kill(const std::string& name) {
  process(name).Signal(SIGKILL);
  process(name).Wait(kStopLimit);
}

std::string Daemons::Stop(const std::string& name, absl::Duration limit) {
  process(name).Signal(SIGTERM);
  process(name).Signal(SIGCONT);
  return End(name, limit);
}

std::string Daemons::End(const std::string& name, absl::Duration limit) {
  const ProcessResult result = process(name).Wait(limit);
  if (result.exit_code == 0) return "";
  return absl::StrCat(name, " did not stop on SIGTERM: exit code ",
                      result.exit_code, ", signal ", result.signal,
                      result.timed_out ? ", too late" : "");
}

std::vector<std::string> Daemons::StopAll(absl::Duration limit) {
  std::vector<std::string> agents;
  for (const std::string& name : names_) {
    if (name == "tracker" || name == "server" || !Running(name)) continue;
    // Asked before any is waited for, since each may take its time.
    process(name).Signal(SIGTERM);
    process(name).Signal(SIGCONT);
    agents.push_back(name);
  }
  std::vector<std::string> wrong;
  const auto note = [&wrong](std::string what) {
    if (!what.empty()) wrong.push_back(std::move(what));
  };
  for (const std::string& name : agents) note(End(name, limit));
  for (const char* name : {"server", "tracker"}) {
    if (Has(name) && Running(name)) note(Stop(name, limit));
  }
  return wrong;
}

std::string Daemons::Death() const {
  for (const std::string& name : names_) {
    const Daemon& daemon = daemons_.at(name);
    if (daemon.process == nullptr || daemon.process->Running()) continue;
    const ProcessResult end = daemon.process->Wait(absl::ZeroDuration());
    return absl::StrCat(name, " ended with status ", end.exit_code, ", signal ",
                        end.signal, ":\n", Said(name));
  }
  return "";
}

std::string Daemons::Said(const std::string& name) const {
  const std::string all =
      ReadFile(absl::StrCat(LogsFolder(), "/", name, ".log"));
  return all.substr(all.size() - std::min(all.size(), kLastWords));
}

std::string Daemons::Said() const {
  std::string said;
  for (const std::string& name : names_) {
    absl::StrAppend(&said, "--- ", name, "\n", Said(name));
  }
  return said;
}

std::vector<pid_t> Daemons::Left() const {
  return ProcessesWith(folder_ + "/");
}

ProcessResult Daemons::Run(std::vector<std::string> arguments,
                           absl::Duration limit) const {
  arguments.insert(arguments.begin(), programs() + "/regatta");
  return RunProcess(arguments, {"REGATTA_SERVER=" + server()}, limit);
}

std::unique_ptr<Process> Daemons::Ask(
    std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), programs() + "/regatta");
  return std::make_unique<Process>(arguments,
                                   Environment{"REGATTA_SERVER=" + server()});
}

bool Daemons::Ready(absl::Duration limit) const {
  return WaitFor(limit, [this] { return Run({"devices"}).exit_code == 0; });
}

}  // namespace regatta::testing
