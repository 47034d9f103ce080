#include "tests/chaos/cluster.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace regatta::testing {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDiskBytes = int64_t{96} << 20;
constexpr absl::Duration kLongestPause = absl::Seconds(2);
constexpr absl::Duration kStopLimit = absl::Seconds(10);

std::vector<int> UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

Cluster::Cluster(std::string folder, std::string programs, bool disks,
                 uint64_t seed)
    : folder_(std::move(folder)),
      programs_(std::move(programs)),
      small_disks_(disks),
      random_(seed) {}

absl::Status Cluster::AddLink(const std::string& name, FaultProxy::Tap tap) {
  ASSIGN_OR_RETURN(links_[name], FaultProxy::Start(tracker_, std::move(tap)));
  return absl::OkStatus();
}

absl::Status Cluster::AddDaemon(const std::string& name,
                                std::vector<std::string> argv) {
  names_.push_back(name);
  fs::create_directory(StateOf(name));
  SmallDisk& disk = disks_.emplace(name, StateOf(name)).first->second;
  if (small_disks_) RETURN_IF_ERROR(disk.Mount(kDiskBytes));
  // Programs by a path of this cluster's own, so that what is left of it can be
  // told from others'.
  argv[0] = folder_ + "/bin/" + argv[0];
  daemons_[name].argv = {"/bin/sh", "-c",
                         absl::StrCat("exec \"$0\" \"$@\" >>", LogsFolder(),
                                      "/", name, ".log 2>&1")};
  std::vector<std::string>& all = daemons_[name].argv;
  all.insert(all.end(), argv.begin(), argv.end());
  return absl::OkStatus();
}

absl::Status Cluster::Start() {
  fs::create_directories(LogsFolder());
  fs::create_directory_symlink(programs_, folder_ + "/bin");
  fs::create_directory(folder_ + "/locks");
  const int tracker_port = FreePort();
  const int server_port = FreePort();
  tracker_ = absl::StrCat("127.0.0.1:", tracker_port);
  server_ = absl::StrCat("127.0.0.1:", server_port);
  const std::string lease_ms = absl::StrCat(absl::ToInt64Milliseconds(kLease));
  RETURN_IF_ERROR(AddDaemon(
      "tracker", {"regatta-tracker", "--listen", tracker_, "--state",
                  StateOf("tracker"), "--auto-approve", "--heartbeat-ms",
                  "1000", "--lease-ms", lease_ms, "--suspect-ms", "3000",
                  "--lost-ms", lease_ms, "--restart-window-ms", lease_ms}));
  RETURN_IF_ERROR(AddLink("server", {}));
  RETURN_IF_ERROR(
      AddDaemon("server", {"regatta-server", "--listen", server_, "--tracker",
                           links_["server"]->address(), "--log",
                           StateOf("server") + "/tuning.db"}));
  const std::vector<int> cpus = UsableCpus();
  for (int i = 0; i < kAgents; ++i) {
    const std::string name = absl::StrCat("agent-", i);
    RETURN_IF_ERROR(AddLink(name, tap_.Tap()));
    RETURN_IF_ERROR(AddDaemon(
        name,
        {"regatta-agent", "--tracker", links_[name]->address(), "--id", name,
         "--cores", absl::StrCat(cpus[i % cpus.size()]), "--device-class",
         kDeviceClass, "--state", StateOf(name), "--worker-dir",
         folder_ + "/bin", "--lock-folder", folder_ + "/locks"}));
  }
  StartAll();
  restarts_ = 0;
  return absl::OkStatus();
}

std::vector<std::string> Cluster::links() const {
  std::vector<std::string> names;
  for (const auto& [name, link] : links_) names.push_back(name);
  return names;
}

void Cluster::Launch(const std::string& name, Daemon* daemon) {
  daemon->process = std::make_unique<Process>(daemon->argv, Environment{});
  daemon->start_at.reset();
  ++restarts_;
}

void Cluster::Tend() {
  const SteadyTime now = RealClock().Steady();
  for (auto& [name, daemon] : daemons_) {
    if (daemon.process->Running()) continue;
    if (!daemon.start_at.has_value()) {
      daemon.start_at = now + kLongestPause * random_.Unit();
    } else if (now >= *daemon.start_at) {
      Launch(name, &daemon);
    }
  }
}

void Cluster::StartAll() {
  for (auto& [name, daemon] : daemons_) {
    if (daemon.process == nullptr || !daemon.process->Running()) {
      Launch(name, &daemon);
    }
  }
}

pid_t Cluster::PidOf(const std::string& daemon,
                     const std::string& worker) const {
  Process& process = *daemons_.at(daemon).process;
  if (!process.Running()) return -1;
  if (worker.empty()) return process.pid();
  pid_t pid = process.pid();
  for (const std::string& program : {std::string("regatta-spawner"), worker}) {
    const std::vector<pid_t> children = ChildrenOf(pid, program);
    if (children.empty()) return -1;
    pid = children.front();
    if (program == worker) break;
  }
  return pid;
}

std::vector<std::string> Cluster::Stop() {
  std::vector<std::string> wrong;
  // The tracker last: it passes on what the others have to say.
  for (auto it = names_.rbegin(); it != names_.rend(); ++it) {
    Process& process = *daemons_.at(*it).process;
    process.Signal(SIGTERM);
    const ProcessResult result = process.Wait(kStopLimit);
    if (result.exit_code != 0) {
      wrong.push_back(absl::StrCat(*it, " did not stop on SIGTERM: exit code ",
                                   result.exit_code, ", signal ", result.signal,
                                   result.timed_out ? ", too late" : ""));
    }
  }
  return wrong;
}

std::vector<pid_t> Cluster::Left() const {
  return ProcessesWith(folder_ + "/");
}

std::unique_ptr<Process> Cluster::Ask(
    std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), programs_ + "/regatta");
  return std::make_unique<Process>(arguments,
                                   Environment{"REGATTA_SERVER=" + server_});
}

}  // namespace regatta::testing
