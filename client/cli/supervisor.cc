#include "client/cli/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta::cli {
namespace {

namespace fs = std::filesystem;

constexpr auto kPoll = std::chrono::milliseconds(20);

// In the child, between fork and exec: system calls only.
[[noreturn]] void ExecDaemon(const char* program, char* const* argv, int log_fd,
                             pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  // Ctrl-C on the terminal is for the supervisor, which stops us in order.
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  const int null_fd = open("/dev/null", O_RDONLY);
  dup2(null_fd, 0);
  dup2(log_fd, 1);
  dup2(log_fd, 2);
  execv(program, argv);
  dprintf(2, "cannot run %s: %s\n", program, strerror(errno));
  _exit(127);
}

std::string HowItEnded(int wait_status) {
  return WIFSIGNALED(wait_status)
             ? absl::StrCat("signal ", WTERMSIG(wait_status))
             : absl::StrCat("exit code ", WEXITSTATUS(wait_status));
}

}  // namespace

std::string LastLine(const std::string& path, int64_t from) {
  std::ifstream in(path);
  in.seekg(from);
  std::string line, last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

Supervisor::~Supervisor() { StopAll(); }

absl::Status Supervisor::Launch(Daemon& daemon) {
  const int log_fd = open(daemon.spec.log_path.c_str(),
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log_fd < 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot write ", daemon.spec.log_path, ": ", std::strerror(errno)));
  }
  daemon.log_start = lseek(log_fd, 0, SEEK_END);
  std::vector<char*> argv;
  argv.push_back(daemon.spec.program.data());
  for (std::string& argument : daemon.spec.arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) ExecDaemon(argv[0], argv.data(), log_fd, parent);
  close(log_fd);
  if (pid < 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start ", daemon.spec.name, ": ", std::strerror(errno)));
  }
  daemon.pid = pid;
  daemon.started = clock_.Steady();
  return absl::OkStatus();
}

absl::Status Supervisor::Start(DaemonSpec spec,
                               const std::function<bool()>& stop) {
  Daemon& daemon = daemons_.emplace_back(Daemon{.spec = std::move(spec)});
  RETURN_IF_ERROR(Launch(daemon));
  while (true) {
    if (stop()) return absl::CancelledError("stopped");
    int wait_status = 0;
    if (waitpid(daemon.pid, &wait_status, WNOHANG) == daemon.pid) {
      daemon.pid = -1;
      const std::string why = LastLine(daemon.spec.log_path, daemon.log_start);
      return absl::FailedPreconditionError(absl::StrCat(
          daemon.spec.name,
          " did not start: ", why.empty() ? HowItEnded(wait_status) : why, " (",
          daemon.spec.log_path, ")"));
    }
    if (daemon.spec.ready()) return absl::OkStatus();
    if (clock_.Steady() - daemon.started > kReadyLimit) {
      return absl::DeadlineExceededError(absl::StrCat(
          daemon.spec.name, " is not ready after ",
          absl::FormatDuration(kReadyLimit), "; see ", daemon.spec.log_path));
    }
    std::this_thread::sleep_for(kPoll);
  }
}

// The daemon goes on writing to the file that it has open, so that is copied
// and emptied, not renamed.
absl::Status Supervisor::BoundLog(Daemon& daemon) {
  const std::string& path = daemon.spec.log_path;
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || size < static_cast<uintmax_t>(daemon.spec.log_limit)) {
    return absl::OkStatus();
  }
  const std::string older = path + ".1";
  fs::copy_file(path, older, fs::copy_options::overwrite_existing, error);
  absl::Status status;
  if (error) {
    status = absl::UnavailableError(
        absl::StrCat("what ", path, " held is dropped: it cannot be copied to ",
                     older, ": ", error.message()));
    fs::remove(older, error);
  }
  fs::resize_file(path, 0, error);
  daemon.log_start = 0;
  return status;
}

void Supervisor::Tend(const std::function<void(const std::string&)>& log) {
  for (Daemon& daemon : daemons_) {
    const SteadyTime now = clock_.Steady();
    if (absl::Status bound = BoundLog(daemon); !bound.ok()) {
      log(std::string(bound.message()));
    }
    int wait_status = 0;
    if (daemon.pid > 0 &&
        waitpid(daemon.pid, &wait_status, WNOHANG) == daemon.pid) {
      if (now - daemon.started > kCalmAfter) daemon.delay = kFirstRestartDelay;
      const std::string last = LastLine(daemon.spec.log_path, daemon.log_start);
      log(absl::StrCat(daemon.spec.name, " ended (", HowItEnded(wait_status),
                       last.empty() ? "" : "; it said last: ", last,
                       "); starting it again in ",
                       absl::FormatDuration(daemon.delay)));
      daemon.pid = -1;
      daemon.restart_at = now + daemon.delay;
      daemon.delay = std::min(daemon.delay * 2, kLongestRestartDelay);
    }
    if (daemon.pid < 0 && now >= daemon.restart_at) {
      if (absl::Status launched = Launch(daemon); !launched.ok()) {
        log(std::string(launched.message()));
        daemon.restart_at = now + kLongestRestartDelay;
      }
    }
  }
}

void Supervisor::StopAll() {
  for (auto it = daemons_.rbegin(); it != daemons_.rend(); ++it) {
    if (it->pid <= 0) continue;
    for (int number : it->spec.stop_signals) kill(it->pid, number);
    const SteadyTime deadline = clock_.Steady() + kStopLimit;
    int wait_status = 0;
    while (waitpid(it->pid, &wait_status, WNOHANG) == 0) {
      if (clock_.Steady() >= deadline) kill(it->pid, SIGKILL);
      std::this_thread::sleep_for(kPoll);
    }
    it->pid = -1;
  }
  daemons_.clear();
}

}  // namespace regatta::cli
