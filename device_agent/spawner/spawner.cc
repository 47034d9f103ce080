#include "device_agent/spawner/spawner.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "proto/utf8_texts.h"

namespace regatta {
namespace {

constexpr int kKillAgainMs = 5;
constexpr int kWatchMs = 20;
// Between two looks at what outlived its killing.
constexpr int kLookAgainMs = 100;
// The agent is trusted and sends whole frames; this bounds a torn one.
constexpr int kFrameMs = 1000;

}  // namespace

Spawner::Spawner(Sandbox sandbox, FrameChannel agent, const Clock& clock)
    : sandbox_(std::move(sandbox)), agent_(std::move(agent)), clock_(clock) {}

absl::Status Spawner::Run() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const UniqueFd signal_fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signal_fd.valid()) {
    return absl::InternalError(absl::StrCat("signalfd: ", strerror(errno)));
  }
  v1::SpawnEvent ready;
  for (const std::string& feature : sandbox_.features()) {
    ready.mutable_ready()->add_sandbox(feature);
  }
  Report(0, std::move(ready));

  for (bool serving = true; serving;) {
    std::vector<pollfd> polled = {{agent_.fd(), POLLIN, 0},
                                  {signal_fd.get(), POLLIN, 0}};
    for (const auto& [id, served] : workers_) {
      if (served.worker->error_pipe() >= 0) {
        polled.push_back({served.worker->error_pipe(), POLLIN, 0});
      }
    }
    if (poll(polled.data(), polled.size(), WaitMs()) < 0 && errno != EINTR) {
      return absl::InternalError(absl::StrCat("poll: ", strerror(errno)));
    }
    signalfd_siginfo info;
    while (read(signal_fd.get(), &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo == SIGTERM) serving = false;
    }
    for (auto& [id, served] : workers_) served.worker->ReadErrors();
    if (polled[0].revents != 0 && !HandleRequest()) serving = false;
    ReapEnded();
    Advance();
  }
  KillAll();
  return absl::OkStatus();
}

bool Spawner::HandleRequest() {
  std::vector<UniqueFd> descriptors;
  absl::StatusOr<v1::SpawnRequest> request =
      agent_.ReceiveMessage<v1::SpawnRequest>(&descriptors, kFrameMs);
  if (!request.ok()) {
    if (request.status().code() != absl::StatusCode::kOutOfRange) {
      LOG(kError) << "from the agent: " << request.status().message();
    }
    return false;
  }
  if (request->has_spawn()) {
    HandleSpawn(request->request_id(), request->spawn(),
                std::move(descriptors));
  } else if (request->has_kill()) {
    const auto it = workers_.find(request->kill().worker());
    // It may just have ended by itself.
    if (it != workers_.end()) {
      it->second.worker->Kill(v1::EXIT_REASON_KILLED_ON_REQUEST, "");
    }
  }
  return true;
}

void Spawner::HandleSpawn(int64_t request_id, const v1::Spawn& spawn,
                          std::vector<UniqueFd> descriptors) {
  v1::SpawnEvent event;
  if (descriptors.empty()) {
    event.set_error("a Spawn without a socket beside it");
    return Report(request_id, std::move(event));
  }
  UniqueFd socket = std::move(descriptors[0]);
  descriptors.erase(descriptors.begin());
  absl::StatusOr<std::unique_ptr<Worker>> worker =
      Worker::Start(spawn, next_worker_, sandbox_, std::move(socket),
                    std::move(descriptors), clock_);
  if (!worker.ok()) {
    event.set_error(std::string(worker.status().message()));
    return Report(request_id, std::move(event));
  }
  event.mutable_started()->set_worker(next_worker_);
  event.mutable_started()->set_pid((*worker)->pid());
  workers_[next_worker_] = {*std::move(worker), request_id};
  ++next_worker_;
  Report(request_id, std::move(event));
}

void Spawner::ReapEnded() {
  for (;;) {
    siginfo_t ended = {};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid == 0) {
      return;
    }
    const auto it =
        std::find_if(workers_.begin(), workers_.end(), [&](const auto& entry) {
          return entry.second.worker->pid() == ended.si_pid;
        });
    // Its number and its group are its own only until it is waited for.
    if (it != workers_.end()) it->second.worker->ProgramEnded();
    int status = 0;
    rusage usage = {};
    wait4(ended.si_pid, &status, 0, &usage);
    if (it != workers_.end()) it->second.worker->ProgramReaped(status, usage);
    for (const auto& worker : outliving_) {
      if (worker->pid() == ended.si_pid) worker->ProgramReaped(status, usage);
    }
  }
}

std::vector<ProcessInfo> Spawner::Orphans(
    const ProcessTree& tree, const std::vector<ProcessInfo>& below) const {
  std::set<pid_t> owned;
  const auto note = [&](const Worker& worker) {
    for (const ProcessInfo& process : worker.Own(tree, below)) {
      owned.insert(process.pid);
    }
  };
  for (const auto& [id, served] : workers_) note(*served.worker);
  for (const auto& worker : outliving_) note(*worker);
  std::vector<ProcessInfo> orphans;
  for (const ProcessInfo& process : below) {
    if (owned.count(process.pid) == 0) orphans.push_back(process);
  }
  return orphans;
}

void Spawner::Advance() {
  const bool any_killing = std::any_of(
      workers_.begin(), workers_.end(),
      [](const auto& entry) { return entry.second.worker->killing(); });
  const bool sweep =
      (any_killing || !outliving_.empty()) && sandbox_.cgroups().empty();
  std::optional<ProcessTree> tree;
  if (sweep || (!workers_.empty() && sandbox_.Has("watch"))) {
    tree = ProcessTree::Read();
  }
  std::vector<ProcessInfo> below, orphans;
  if (sweep) {
    below = tree->Descendants(getpid());
    orphans = Orphans(*tree, below);
  }
  const auto strays = [&](const Worker& worker) {
    std::vector<ProcessInfo> all = orphans;
    if (!sweep) return all;
    for (const ProcessInfo& own : worker.Own(*tree, below)) all.push_back(own);
    return all;
  };
  std::erase_if(outliving_, [&](const auto& worker) {
    return worker->Gone(strays(*worker));
  });
  for (auto it = workers_.begin(); it != workers_.end();) {
    Worker& worker = *it->second.worker;
    worker.CheckLimits(tree.has_value() ? &*tree : nullptr);
    if (!worker.Finish(strays(worker))) {
      ++it;
      continue;
    }
    worker.ReadErrors();
    v1::SpawnEvent event;
    *event.mutable_exited() = worker.Report();
    const int64_t request_id = it->second.request_id;
    if (worker.leftovers()) {
      // They may as well be of others that are being killed.
      for (auto& [id, other] : workers_) {
        if (other.worker->killing()) other.worker->Claim(orphans);
      }
      LOG(kWarning) << "worker " << worker.pid()
                    << " outlives its killing; what it holds stays held until "
                       "nothing of it is left";
      outliving_.push_back(std::move(it->second.worker));
    }
    it = workers_.erase(it);
    Report(request_id, std::move(event));
  }
}

int Spawner::WaitMs() const {
  int64_t wait = outliving_.empty() ? -1 : kLookAgainMs;
  const auto at_most = [&](int64_t ms) {
    wait = wait < 0 ? ms : std::min(wait, ms);
  };
  for (const auto& [id, served] : workers_) {
    if (served.worker->killing()) {
      at_most(kKillAgainMs);
      continue;
    }
    if (sandbox_.Has("watch")) at_most(kWatchMs);
    if (served.worker->deadline().has_value()) {
      const absl::Duration left = *served.worker->deadline() - clock_.Steady();
      at_most(std::max<int64_t>(0, absl::ToInt64Milliseconds(left) + 1));
    }
  }
  return static_cast<int>(std::min<int64_t>(wait, 1 << 30));
}

void Spawner::Report(int64_t request_id, v1::SpawnEvent event) {
  event.set_request_id(request_id);
  MakeTextsUtf8(event);
  // A failure to send shows as the end of the socket in the next round.
  agent_.Send(event).IgnoreError();
}

void Spawner::KillAll() {
  for (auto& [id, served] : workers_) {
    served.worker->Kill(v1::EXIT_REASON_KILLED_ON_REQUEST, "");
  }
  while (!workers_.empty()) {
    ReapEnded();
    Advance();
    if (!workers_.empty()) poll(nullptr, 0, kKillAgainMs);
  }
  // The agent need not wait for what may never end.
  agent_ = FrameChannel(UniqueFd());
  while (!outliving_.empty()) {
    poll(nullptr, 0, kLookAgainMs);
    ReapEnded();
    Advance();
  }
}

}  // namespace regatta
