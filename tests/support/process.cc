#include "tests/support/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace regatta::testing {
namespace fs = std::filesystem;
namespace {

constexpr auto kPoll = std::chrono::milliseconds(10);

std::string CommandLine(const fs::path& proc) {
  std::string text = ReadFile(proc / "cmdline");
  for (char& c : text) {
    if (c == '\0') c = ' ';
  }
  return text;
}

pid_t ParentOf(const fs::path& proc) {
  const std::string stat = ReadFile(proc / "stat");
  const size_t end = stat.rfind(')');
  if (end == std::string::npos || end + 4 > stat.size()) return -1;
  return std::atoi(stat.c_str() + end + 4);
}

std::vector<pid_t> FindProcesses(
    const std::function<bool(const fs::path&)>& match) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && pid != getpid() && match(entry.path())) found.push_back(pid);
  }
  return found;
}

}  // namespace

Process::Process(const std::vector<std::string>& argv,
                 const Environment& environment) {
  char out[] = "/tmp/regatta-out-XXXXXX";
  char err[] = "/tmp/regatta-err-XXXXXX";
  const int out_fd = mkstemp(out);
  const int err_fd = mkstemp(err);
  out_path_ = out;
  err_path_ = err;
  std::vector<char*> args;
  for (const std::string& a : argv)
    args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  pid_ = fork();
  CHECK(pid_ >= 0);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    for (const std::string& e : environment) {
      putenv(const_cast<char*>(e.c_str()));
    }
    const int null_fd = open("/dev/null", O_RDONLY);
    dup2(null_fd, 0);
    dup2(out_fd, 1);
    dup2(err_fd, 2);
    execvp(args[0], args.data());
    _exit(127);
  }
  setpgid(pid_, pid_);
  close(out_fd);
  close(err_fd);
}

Process::~Process() {
  if (Running()) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, &wait_status_, 0);
  }
  unlink(out_path_.c_str());
  unlink(err_path_.c_str());
}

bool Process::Running() {
  if (!reaped_ && waitpid(pid_, &wait_status_, WNOHANG) == pid_) reaped_ = true;
  return !reaped_;
}

void Process::Signal(int signal) {
  if (Running()) kill(pid_, signal);
}

ProcessResult Process::Wait(absl::Duration limit) {
  ProcessResult result;
  result.timed_out = !WaitFor(limit, [this] { return !Running(); });
  if (result.timed_out) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, &wait_status_, 0);
    reaped_ = true;
  }
  if (WIFEXITED(wait_status_)) result.exit_code = WEXITSTATUS(wait_status_);
  if (WIFSIGNALED(wait_status_)) result.signal = WTERMSIG(wait_status_);
  result.out = ReadFile(out_path_);
  result.err = ReadFile(err_path_);
  return result;
}

ProcessResult RunProcess(const std::vector<std::string>& argv,
                         const Environment& environment, absl::Duration limit) {
  return Process(argv, environment).Wait(limit);
}

bool WaitFor(absl::Duration limit, const std::function<bool()>& condition) {
  const SteadyTime deadline = RealClock().Steady() + limit;
  while (!condition()) {
    if (RealClock().Steady() > deadline) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

std::vector<pid_t> ChildrenOf(pid_t parent, const std::string& text) {
  return FindProcesses([&](const fs::path& proc) {
    return ParentOf(proc) == parent &&
           CommandLine(proc).find(text) != std::string::npos;
  });
}

std::vector<pid_t> ProcessesWith(const std::string& text) {
  return FindProcesses([&](const fs::path& proc) {
    return CommandLine(proc).find(text) != std::string::npos;
  });
}

std::vector<pid_t> ProcessesBelow(pid_t ancestor) {
  std::vector<pid_t> below = ChildrenOf(ancestor, "");
  for (size_t i = 0; i < below.size(); ++i) {
    const std::vector<pid_t> more = ChildrenOf(below[i], "");
    below.insert(below.end(), more.begin(), more.end());
  }
  return below;
}

bool AllGone(const std::vector<pid_t>& pids, absl::Duration limit) {
  return WaitFor(limit, [&] {
    return std::none_of(pids.begin(), pids.end(), [](pid_t pid) {
      const std::string stat =
          ReadFile("/proc/" + std::to_string(pid) + "/stat");
      const size_t end = stat.rfind(')');
      return end != std::string::npos && stat.size() > end + 2 &&
             stat[end + 2] != 'Z';
    });
  });
}

TempDir::TempDir(const std::string& parent)
    : path_(parent + "/regatta-test-XXXXXX") {
  CHECK(mkdtemp(path_.data()) != nullptr);
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

int FreePort() {
  const UniqueFd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  CHECK(bind(probe.get(), any, size) == 0 &&
        getsockname(probe.get(), any, &size) == 0)
      << "no free port on loopback";
  return ntohs(address.sin_port);
}

std::string ReadFile(const std::string& path) {
  // Not by the buffer's iterators: those throw where a read fails, as it does
  // for a process's file in /proc when the process ends.
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace regatta::testing
