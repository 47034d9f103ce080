#include "tracker/power_runner.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/one_line.h"
#include "base/unique_fd.h"
#include "base/utf8.h"
#include "tracker/config/http_post.h"

extern char** environ;

namespace regatta {
namespace {

constexpr timespec kMoment = {0, 20'000'000};

// What a program prints, of which the beginning is kept.
class Output {
 public:
  static constexpr size_t kKept = 200;

  Output() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    read_ = UniqueFd(ends[0]);
    write_ = UniqueFd(ends[1]);
    fcntl(read_.get(), F_SETFL, O_NONBLOCK);
  }
  // -1: there is none.
  int write_end() const { return write_.valid() ? write_.get() : -1; }
  void CloseWriteEnd() { write_ = UniqueFd(); }

  // Takes what there is, so that the program need not wait; a bounded part of
  // what never ends.
  void Drain() {
    char buffer[4096];
    for (int i = 0; i < 256 && read_.valid(); ++i) {
      const ssize_t size = read(read_.get(), buffer, sizeof(buffer));
      if (size <= 0) return;
      const auto count = static_cast<size_t>(size);
      // Some more than are told, to see what character the cut is in.
      kept_.append(buffer, std::min(count, kKept + 4 - kept_.size()));
    }
  }
  // ", having said \"...\""; "": it said nothing.
  std::string Said() const {
    const std::string text(absl::StripAsciiWhitespace(kept_));
    if (text.empty()) return "";
    if (text.size() <= kKept) {
      return absl::StrCat(", having said \"", OneLine(text), "\"");
    }
    return absl::StrCat(", having said \"", OneLine(Utf8Beginning(text, kKept)),
                        "...\"");
  }

 private:
  UniqueFd read_, write_;
  std::string kept_;
};

// The child's own group and signals: this process blocks SIGTERM.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& argv, int output) {
  std::vector<char*> arguments;
  for (const std::string& one : argv) {
    arguments.push_back(const_cast<char*>(one.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY,
                                   0);
  if (output >= 0) {
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0].c_str(), &files, &attributes,
                                arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot start ", argv[0], ": ", strerror(error)));
  }
  return pid;
}

}  // namespace

absl::Status RunPowerCommand(const PowerCommand& command,
                             absl::Duration limit) {
  if (!command.url.empty()) {
    return HttpPost(command.url, "", "text/plain", limit);
  }
  Output output;
  const absl::StatusOr<pid_t> pid = Spawn(command.argv, output.write_end());
  if (!pid.ok()) return pid.status();
  output.CloseWriteEnd();
  const SteadyTime end = RealClock().Steady() + limit;
  int status = 0;
  pid_t ended;
  while ((ended = waitpid(*pid, &status, WNOHANG)) == 0) {
    output.Drain();
    if (RealClock().Steady() >= end) {
      kill(-*pid, SIGKILL);
      waitpid(*pid, &status, 0);
      return absl::DeadlineExceededError(
          absl::StrCat(command.argv[0], " was killed after ",
                       absl::FormatDuration(limit), output.Said()));
    }
    nanosleep(&kMoment, nullptr);
  }
  if (ended != *pid) {
    return absl::UnavailableError(absl::StrCat(
        "cannot wait for ", command.argv[0], ": ", strerror(errno)));
  }
  output.Drain();
  const std::string said = output.Said();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    if (!said.empty()) LOG(kInfo) << command.argv[0] << " is done" << said;
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      command.argv[0],
      WIFEXITED(status) ? " ended with exit code " : " was ended by signal ",
      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), said));
}

void PowerRunner::Stop() {
  std::list<Running> running;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    // Nodes stay where they are: their threads write to them.
    running.swap(running_);
  }
  for (Running& one : running) one.thread.join();
}

void PowerRunner::Run(const std::string& device_id,
                      const PowerCommand& command) {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  running_.remove_if([](Running& running) {
    if (running.ended) running.thread.join();
    return running.ended;
  });
  Running& running = running_.emplace_back();
  running.thread = std::thread([this, device_id, command, &running] {
    done_(device_id, RunPowerCommand(command, kLimit));
    std::lock_guard lock(mutex_);
    running.ended = true;
  });
}

}  // namespace regatta
