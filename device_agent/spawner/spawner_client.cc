#include "device_agent/spawner/spawner_client.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"

extern char** environ;

namespace regatta {
namespace {

constexpr int kSpawnerChannel = 3;
constexpr int kReadyMs = 10'000;
// For a spawner that has let go of its socket.
constexpr int kEndMs = 1000;
constexpr int kLookAgainMs = 2;

absl::StatusOr<pid_t> StartProgram(const std::string& program,
                                   const std::vector<std::string>& without,
                                   const std::vector<std::string>& exec_prefix,
                                   int socket) {
  std::vector<std::string> words = exec_prefix;
  words.push_back(program);
  if (!without.empty()) {
    words.push_back("--without=" + absl::StrJoin(without, ","));
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, kSpawnerChannel);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Out of the terminal's reach: Ctrl-C is the agent's to handle.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t pid = 0;
  const int result = posix_spawn(&pid, words[0].c_str(), &actions, &attributes,
                                 arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (result != 0) {
    return absl::NotFoundError(
        absl::StrCat("starting ", words[0], ": ", strerror(result)));
  }
  return pid;
}

// One that stays is left to init.
void AwaitEnd(pid_t pid) {
  for (int waited = 0; waited < kEndMs; waited += kLookAgainMs) {
    const pid_t ended = waitpid(pid, nullptr, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) return;
    poll(nullptr, 0, kLookAgainMs);
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<SpawnerClient>> SpawnerClient::Start(
    const std::string& program, const std::vector<std::string>& without,
    const std::vector<std::string>& exec_prefix,
    absl::Duration answers_within) {
  ASSIGN_OR_RETURN(auto ends, FrameChannel::SocketPair());
  ASSIGN_OR_RETURN(const pid_t pid, StartProgram(program, without, exec_prefix,
                                                 ends.second.get()));
  ends.second.Reset();
  std::shared_ptr<SpawnerClient> client(new SpawnerClient(
      FrameChannel(std::move(ends.first)), pid, answers_within));
  absl::StatusOr<v1::SpawnEvent> ready =
      client->channel_.ReceiveMessage<v1::SpawnEvent>(nullptr, kReadyMs);
  if (!ready.ok()) {
    return absl::UnavailableError(absl::StrCat(
        program, " did not come up",
        exec_prefix.empty()
            ? ""
            : absl::StrCat(" behind '", absl::StrJoin(exec_prefix, " "), "'"),
        ": ", ready.status().message()));
  }
  client->sandbox_.assign(ready->ready().sandbox().begin(),
                          ready->ready().sandbox().end());
  // Signals are for the program's own threads, whichever it keeps them from.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  client->reader_ = std::thread(&SpawnerClient::ReadEvents, client.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return client;
}

SpawnerClient::~SpawnerClient() {
  // The spawner sees the end, kills its workers and lets go; the reader then
  // sees the end too.
  shutdown(channel_.fd(), SHUT_WR);
  if (reader_.joinable()) {
    reader_.join();
  } else {
    kill(pid_, SIGKILL);
  }
  AwaitEnd(pid_);
}

std::string SpawnerClient::SandboxText() const {
  return absl::StrJoin(sandbox_, ",");
}

absl::Status SpawnerClient::Require(
    const std::vector<std::string>& required) const {
  std::vector<std::string> missing;
  for (const std::string& feature : required) {
    if (std::count(sandbox_.begin(), sandbox_.end(), feature) == 0) {
      missing.push_back(feature);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "required sandbox features are not in force here: ",
      absl::StrJoin(missing, ", "), "; in force are ", SandboxText()));
}

bool SpawnerClient::alive() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return alive_;
}

std::map<std::string, SpawnerClient::WorkerCounts>
SpawnerClient::worker_counts() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

absl::Status SpawnerClient::SendRequest(const v1::SpawnRequest& request,
                                        absl::Span<const int> descriptors) {
  std::lock_guard<std::mutex> lock(send_mutex_);
  return channel_.Send(request, descriptors);
}

absl::StatusOr<std::unique_ptr<WorkerHandle>> SpawnerClient::Spawn(
    const v1::Spawn& spawn, absl::Span<const int> held) {
  ASSIGN_OR_RETURN(auto ends, FrameChannel::SocketPair());
  auto fate = std::make_shared<WorkerHandle::Fate>();
  fate->role = spawn.role();
  v1::SpawnRequest request;
  *request.mutable_spawn() = spawn;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    request.set_request_id(next_request_++);
    fates_[request.request_id()] = fate;
  }
  std::vector<int> descriptors = {ends.second.get()};
  descriptors.insert(descriptors.end(), held.begin(), held.end());
  const absl::Status sent = SendRequest(request, descriptors);
  ends.second.Reset();
  std::unique_lock<std::mutex> lock(mutex_);
  if (sent.ok() &&
      !changed_.wait_for(lock, absl::ToChronoNanoseconds(answers_within_), [&] {
        return fate->started.has_value() || !fate->error.empty() || !alive_;
      })) {
    // Its workers die with it; whoever owns this client sees that it is gone.
    LOG(kError) << "the spawner has not answered for "
                << absl::FormatDuration(answers_within_) << "; killing it";
    kill(pid_, SIGKILL);
    changed_.wait(lock, [&] { return !alive_; });
  }
  if (fate->started.has_value()) {
    return std::unique_ptr<WorkerHandle>(new WorkerHandle(
        shared_from_this(), FrameChannel(std::move(ends.first)), fate,
        *fate->started));
  }
  fates_.erase(request.request_id());
  if (!fate->error.empty()) {
    return absl::InternalError(
        absl::StrCat("starting ", spawn.program(), ": ", fate->error));
  }
  if (absl::IsInvalidArgument(sent)) {
    return absl::InvalidArgumentError(
        absl::StrCat("starting ", spawn.program(), ": ", sent.message()));
  }
  return absl::UnavailableError("the spawner is gone");
}

v1::SpawnEvent ReadSpawnEvent(const std::string& bytes) {
  v1::SpawnEvent event;
  if (event.ParseFromString(bytes)) return event;
  // What comes first was read: whose it is.
  v1::SpawnEvent unread;
  unread.set_request_id(event.request_id());
  LOG(kError) << "a report of the spawner on its request " << event.request_id()
              << " cannot be read";
  if (event.has_exited()) {
    unread.mutable_exited()->set_worker(event.exited().worker());
  } else {
    unread.set_error("the spawner's answer cannot be read");
  }
  return unread;
}

void SpawnerClient::ReadEvents() {
  for (;;) {
    const absl::StatusOr<FrameChannel::Frame> frame = channel_.Receive();
    std::optional<v1::SpawnEvent> event;
    if (frame.ok()) event = ReadSpawnEvent(frame->bytes);
    std::lock_guard<std::mutex> lock(mutex_);
    if (!event.has_value()) {
      alive_ = false;
      changed_.notify_all();
      return;
    }
    const auto it = fates_.find(event->request_id());
    if (it == fates_.end()) continue;
    if (event->has_started()) {
      it->second->started = event->started();
      ++counts_[it->second->role].started;
    }
    if (!event->error().empty()) it->second->error = event->error();
    if (event->has_exited()) {
      it->second->exited = event->exited();
      ++counts_[it->second->role].exited[event->exited().reason()];
      fates_.erase(it);
    }
    changed_.notify_all();
  }
}

WorkerHandle::WorkerHandle(std::shared_ptr<SpawnerClient> client,
                           FrameChannel channel, std::shared_ptr<Fate> fate,
                           v1::Started started)
    : client_(std::move(client)),
      channel_(std::move(channel)),
      fate_(std::move(fate)),
      worker_(started.worker()),
      pid_(started.pid()) {}

WorkerHandle::~WorkerHandle() { Kill(); }

void WorkerHandle::Kill() {
  {
    std::lock_guard<std::mutex> lock(client_->mutex_);
    if (fate_->exited.has_value() || !client_->alive_) return;
  }
  v1::SpawnRequest request;
  request.mutable_kill()->set_worker(worker_);
  // A spawner that is gone has taken its workers with it.
  client_->SendRequest(request, {}).IgnoreError();
}

absl::StatusOr<v1::Exited> WorkerHandle::WaitExited(absl::Duration limit) {
  std::unique_lock<std::mutex> lock(client_->mutex_);
  const bool told = client_->changed_.wait_for(
      lock, absl::ToChronoNanoseconds(limit),
      [&] { return fate_->exited.has_value() || !client_->alive_; });
  if (fate_->exited.has_value()) return *fate_->exited;
  if (told) return absl::UnavailableError("the spawner is gone");
  return absl::DeadlineExceededError(absl::StrCat(
      "worker ", pid_, " is not gone after ", absl::FormatDuration(limit)));
}

}  // namespace regatta
