#include "tests/chaos/cluster.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta::testing {
namespace {

constexpr int64_t kDiskBytes = int64_t{96} << 20;
constexpr absl::Duration kLongestPause = absl::Seconds(2);

}  // namespace

Cluster::Cluster(std::string folder, std::string programs, bool disks,
                 uint64_t seed)
    : small_disks_(disks),
      random_(seed),
      daemons_(std::move(folder), std::move(programs)) {}

absl::Status Cluster::AddLink(const std::string& name, FaultProxy::Tap tap) {
  ASSIGN_OR_RETURN(links_[name],
                   FaultProxy::Start(daemons_.tracker(), std::move(tap)));
  return absl::OkStatus();
}

absl::Status Cluster::Start() {
  const std::string lease_ms = absl::StrCat(absl::ToInt64Milliseconds(kLease));
  daemons_.AddTracker({"--auto-approve", "--heartbeat-ms", "1000", "--lease-ms",
                       lease_ms, "--suspect-ms", "3000", "--lost-ms", lease_ms,
                       "--restart-window-ms", lease_ms});
  RETURN_IF_ERROR(AddLink("server", {}));
  daemons_.AddServer({}, links_["server"]->address());
  const std::vector<std::string> cores = UsableCores();
  for (int i = 0; i < kAgents; ++i) {
    const std::string name = absl::StrCat("agent-", i);
    RETURN_IF_ERROR(AddLink(name, tap_.Tap()));
    daemons_.AddAgent(
        name,
        {"--cores", cores[i % cores.size()], "--device-class", kDeviceClass},
        links_[name]->address());
  }
  for (const std::string& name : daemons()) {
    SmallDisk& disk =
        disks_.emplace(name, daemons_.StateOf(name)).first->second;
    if (small_disks_) RETURN_IF_ERROR(disk.Mount(kDiskBytes));
  }
  daemons_.StartAll();
  return absl::OkStatus();
}

std::vector<std::string> Cluster::links() const {
  std::vector<std::string> names;
  for (const auto& [name, link] : links_) names.push_back(name);
  return names;
}

void Cluster::Tend() {
  const SteadyTime now = RealClock().Steady();
  for (const std::string& name : daemons()) {
    if (daemons_.Running(name)) continue;
    const auto [at, has_just_ended] =
        start_at_.try_emplace(name, now + kLongestPause * random_.Unit());
    if (has_just_ended || now < at->second) continue;
    start_at_.erase(at);
    daemons_.Start(name);
    ++restarts_;
  }
}

void Cluster::StartAll() {
  for (const std::string& name : daemons()) {
    if (!daemons_.Running(name)) ++restarts_;
  }
  start_at_.clear();
  daemons_.StartAll();
}

pid_t Cluster::PidOf(const std::string& daemon,
                     const std::string& worker) const {
  if (!daemons_.Running(daemon)) return -1;
  pid_t pid = daemons_.process(daemon).pid();
  if (worker.empty()) return pid;
  for (const std::string& program : {std::string("regatta-spawner"), worker}) {
    const std::vector<pid_t> children = ChildrenOf(pid, program);
    if (children.empty()) return -1;
    pid = children.front();
    if (program == worker) break;
  }
  return pid;
}

}  // namespace regatta::testing
