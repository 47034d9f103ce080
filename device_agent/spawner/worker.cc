#include "device_agent/spawner/worker.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/system_error.h"
#include "base/utf8.h"
#include "device_agent/spawner/cpu_list.h"

namespace regatta {
namespace {

constexpr int kWorkerChannel = 3;
constexpr size_t kErrorReadBytes = 64 << 10;
// Where descriptors that a worker inherits begin.
constexpr int kFirstInherited = 10;

struct Pipe {
  UniqueFd read, write;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// What the forked child needs to become the worker.
struct Launch {
  const v1::Spawn& spawn;
  const Sandbox& sandbox;
  ChildSetup setup;
  std::vector<int> cpus;
  int socket, errors;
  // Arguments that name files, by position: open, since the worker's user may
  // be unable to reach their folders.
  std::map<int, UniqueFd> argument_files;
};

// Opens what stands behind an execution prefix: the worker itself, folders.
void OpenArguments(Launch* launch) {
  for (int i = 0; i < launch->spawn.arguments_size(); ++i) {
    const std::string& argument = launch->spawn.arguments(i);
    if (argument.empty() || argument[0] != '/') continue;
    UniqueFd file(open(argument.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info;
    if (file.valid() && fstat(file.get(), &info) == 0 &&
        S_ISREG(info.st_mode)) {
      launch->setup.program_files.push_back(file.get());
      launch->argument_files.emplace(i, std::move(file));
    } else {
      launch->setup.programs.push_back(argument);
    }
  }
}

// The arguments, with open files as paths that any user may open.
absl::StatusOr<std::vector<std::string>> InheritedArguments(
    const Launch& launch) {
  std::vector<std::string> arguments(launch.spawn.arguments().begin(),
                                     launch.spawn.arguments().end());
  for (const auto& [position, file] : launch.argument_files) {
    const int inherited = fcntl(file.get(), F_DUPFD, kFirstInherited);
    if (inherited < 0) return SystemError("descriptors");
    arguments[position] = absl::StrCat("/proc/self/fd/", inherited);
  }
  return arguments;
}

absl::Status WireDescriptors(const Launch& launch) {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0 ||
      dup2(launch.errors, 2) < 0 || dup2(launch.socket, kWorkerChannel) < 0) {
    return SystemError("descriptors");
  }
  return absl::OkStatus();
}

absl::Status PinTo(const std::vector<int>& cpus) {
  if (cpus.empty()) return absl::OkStatus();
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    return SystemError(absl::StrCat("running on CPUs ", FormatCpuList(cpus)));
  }
  return absl::OkStatus();
}

// The sandbox's variables, then what the request adds.
std::vector<std::string> EnvironmentOf(const Launch& launch) {
  std::vector<std::string> environment = launch.sandbox.Environment();
  const auto set = [&](const std::string& variable) {
    const std::string name = variable.substr(0, variable.find('=') + 1);
    std::erase_if(environment, [&](const std::string& old) {
      return absl::StartsWith(old, name);
    });
    environment.push_back(variable);
  };
  if (launch.setup.scratch != nullptr) {
    for (const char* name : {"HOME", "TMPDIR", "XDG_CACHE_HOME"}) {
      set(absl::StrCat(name, "=", launch.setup.scratch->path()));
    }
  }
  for (const std::string& variable : launch.spawn.environment()) set(variable);
  return environment;
}

// Returns only on failure.
absl::Status BecomeWorker(const Launch& launch) {
  for (int signal_number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    signal(signal_number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  RETURN_IF_ERROR(PinTo(launch.cpus));
  RETURN_IF_ERROR(launch.sandbox.ApplyInChild(launch.setup));
  RETURN_IF_ERROR(WireDescriptors(launch));

  std::vector<std::string> environment = EnvironmentOf(launch);
  std::vector<char*> arguments = {
      const_cast<char*>(launch.spawn.program().c_str())};
  ASSIGN_OR_RETURN(std::vector<std::string> inherited,
                   InheritedArguments(launch));
  for (std::string& argument : inherited) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (std::string& variable : environment) {
    variables.push_back(variable.data());
  }
  variables.push_back(nullptr);
  // By descriptor: the worker's user may be unable to reach the program's
  // folder.
  syscall(SYS_execveat, launch.setup.program, "", arguments.data(),
          variables.data(), AT_EMPTY_PATH);
  if (errno == ENOSYS) {  // QEMU's user mode before 8.0
    execve(absl::StrCat("/proc/self/fd/", launch.setup.program).c_str(),
           arguments.data(), variables.data());
  }
  return SystemError(absl::StrCat("executing ", launch.spawn.program()));
}

// Everything that can be read until the writers are gone.
std::string ReadAll(int fd) {
  std::string text;
  char buffer[512];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got > 0) text.append(buffer, got);
    if (got == 0 || (got < 0 && errno != EINTR)) return text;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(
    const v1::Spawn& spawn, int64_t id, Sandbox& sandbox, UniqueFd socket,
    std::vector<UniqueFd> held, const Clock& clock) {
  if (spawn.role() != "build" && spawn.role() != "run") {
    return absl::InvalidArgumentError(
        absl::StrCat("role \"", spawn.role(), "\" is neither build nor run"));
  }
  const UniqueFd program(open(spawn.program().c_str(), O_RDONLY | O_CLOEXEC));
  if (!program.valid()) {
    return absl::NotFoundError(absl::StrCat("worker program ", spawn.program(),
                                            ": ", strerror(errno)));
  }
  std::unique_ptr<Worker> worker(new Worker(clock));
  worker->id_ = id;
  worker->role_ = spawn.role();
  worker->memory_limit_bytes_ = spawn.memory_limit_bytes();
  worker->max_tasks_ = spawn.max_tasks();
  worker->held_ = std::move(held);
  Launch launch{spawn, sandbox, {}, {}, socket.get(), -1, {}};
  ASSIGN_OR_RETURN(launch.cpus, ParseCpuList(spawn.cpu_list()));
  ASSIGN_OR_RETURN(Pipe errors, MakePipe());
  ASSIGN_OR_RETURN(Pipe failure, MakePipe());
  if (!sandbox.cgroups().empty()) {
    ASSIGN_OR_RETURN(
        worker->cgroup_,
        sandbox.cgroups().Create({spawn.memory_limit_bytes(), spawn.max_tasks(),
                                  CpuWeightOf(spawn.role())}));
  }
  if (spawn.scratch_bytes() > 0) {
    ASSIGN_OR_RETURN(worker->scratch_,
                     sandbox.MakeScratch(spawn.role(), spawn.scratch_bytes()));
  }
  launch.setup.role = spawn.role();
  launch.setup.scratch = worker->scratch_.get();
  launch.setup.writable = {spawn.writable().begin(), spawn.writable().end()};
  launch.setup.limits = {spawn.memory_limit_bytes(), spawn.max_tasks(),
                         spawn.reserves_addresses()};
  launch.setup.cgroup = worker->cgroup_.get();
  launch.setup.program = program.get();
  launch.setup.parent = getpid();
  OpenArguments(&launch);
  launch.errors = errors.write.get();
  pid_t child = worker->cgroup_ == nullptr ? -1 : worker->cgroup_->ForkInside();
  launch.setup.forked_inside = child >= 0;
  if (child < 0) child = fork();
  if (child < 0) return SystemError("fork");
  if (child == 0) {
    // They are the spawner's to hold; a worker may open only a few files.
    for (const UniqueFd& file : worker->held_) close(file.get());
    const std::string message(BecomeWorker(launch).message());
    [[maybe_unused]] ssize_t written =
        write(failure.write.get(), message.data(), message.size());
    _exit(127);
  }
  worker->pid_ = child;
  failure.write.Reset();
  errors.write.Reset();
  if (const std::string message = ReadAll(failure.read.get());
      !message.empty()) {
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return absl::InternalError(message);
  }
  fcntl(errors.read.get(), F_SETFL, O_NONBLOCK);
  worker->errors_ = std::move(errors.read);
  if (spawn.wall_limit_ms() > 0) {
    worker->limit_.emplace(child, absl::Milliseconds(spawn.wall_limit_ms()),
                           clock.Steady());
  }
  return worker;
}

void Worker::ReadErrors() {
  if (!errors_.valid()) return;
  char buffer[4096];
  // Bounded, so that a worker that never stops writing starves nobody.
  for (size_t total = 0; total < kErrorReadBytes;) {
    const ssize_t got = read(errors_.get(), buffer, sizeof(buffer));
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) errors_.Reset();
      return;
    }
    if (got == 0) {
      errors_.Reset();
      return;
    }
    total += got;
    error_tail_.append(buffer, got);
    // Some bytes more than are told, to see what character the cut is in.
    if (error_tail_.size() > kErrorTailBytes + 4) {
      error_tail_.erase(0, error_tail_.size() - kErrorTailBytes - 4);
    }
  }
}

void Worker::Kill(v1::ExitReason reason, const std::string& note) {
  if (killing()) return;
  reason_ = reason;
  note_ = note;
  kill_deadline_ = clock_.Steady() + kKillLimit;
  // The program has not been waited for, so its number is still its own and its
  // group's.
  kill(pid_, SIGKILL);
  kill(-pid_, SIGKILL);
  if (cgroup_ != nullptr) cgroup_->Kill();
}

void Worker::ProgramEnded() {
  kill(-pid_, SIGKILL);
  Kill(v1::EXIT_REASON_UNSPECIFIED, "");
}

void Worker::ProgramReaped(int status, const rusage& usage) {
  reaped_ = true;
  status_ = status;
  peak_bytes_ = std::max<int64_t>(peak_bytes_, usage.ru_maxrss * 1024);
}

void Worker::CheckLimits(const ProcessTree* tree) {
  if (killing()) return;
  if (limit_.has_value()) {
    const PatientLimit::State state = limit_->Check(clock_.Steady());
    if (state != PatientLimit::State::kWithin) {
      return Kill(state == PatientLimit::State::kReached
                      ? v1::EXIT_REASON_WALL_LIMIT
                      : v1::EXIT_REASON_STARVED,
                  "");
    }
  }
  const ProcessInfo* program = tree == nullptr ? nullptr : tree->Find(pid_);
  if (program == nullptr) return;
  int64_t bytes = program->resident_bytes;
  int tasks = program->threads;
  for (const ProcessInfo& process : tree->Descendants(pid_)) {
    bytes += process.resident_bytes;
    tasks += process.threads;
  }
  peak_bytes_ = std::max(peak_bytes_, bytes);
  if (memory_limit_bytes_ > 0 && bytes > memory_limit_bytes_) {
    Kill(v1::EXIT_REASON_MEMORY_LIMIT, "");
  } else if (max_tasks_ > 0 && tasks > max_tasks_) {
    Kill(v1::EXIT_REASON_SANDBOX,
         absl::StrCat("more than ", max_tasks_, " processes and threads"));
  }
}

std::vector<ProcessInfo> Worker::Own(
    const ProcessTree& tree, const std::vector<ProcessInfo>& below) const {
  std::set<pid_t> pids = claimed_;
  // Once waited for, its number may be another's.
  if (!reaped_) {
    pids.insert(pid_);
    for (const ProcessInfo& process : tree.Descendants(pid_)) {
      pids.insert(process.pid);
    }
  }
  std::vector<ProcessInfo> own;
  for (const ProcessInfo& process : below) {
    if (pids.count(process.pid) > 0) own.push_back(process);
  }
  return own;
}

void Worker::Claim(const std::vector<ProcessInfo>& processes) {
  for (const ProcessInfo& process : processes) claimed_.insert(process.pid);
}

bool Worker::Gone(const std::vector<ProcessInfo>& strays) {
  // The numbers of those that are gone will be others'.
  std::erase_if(claimed_, [&](pid_t pid) {
    return std::none_of(
        strays.begin(), strays.end(),
        [&](const ProcessInfo& stray) { return stray.pid == pid; });
  });
  if (cgroup_ != nullptr) {
    if (reaped_ && cgroup_->Empty()) return true;
    cgroup_->Kill();
  } else {
    if (reaped_ && strays.empty()) return true;
    // Stopped first, so that they cannot fork faster than they are killed.
    for (const ProcessInfo& stray : strays) kill(stray.pid, SIGSTOP);
    for (const ProcessInfo& stray : strays) kill(stray.pid, SIGKILL);
  }
  return false;
}

bool Worker::Finish(const std::vector<ProcessInfo>& strays) {
  if (!killing()) return false;
  if (Gone(strays)) return true;
  if (clock_.Steady() < *kill_deadline_) return false;
  leftovers_ = true;
  Claim(strays);
  return true;
}

v1::Exited Worker::Report() const {
  v1::Exited exited;
  exited.set_worker(id_);
  exited.set_leftovers(leftovers_);
  exited.set_stderr_tail(
      absl::StrCat(Utf8End(error_tail_, kErrorTailBytes), note_));
  const bool signalled = WIFSIGNALED(status_);
  exited.set_code(signalled ? WTERMSIG(status_) : WEXITSTATUS(status_));
  int64_t peak = peak_bytes_;
  v1::ExitReason reason = reason_;
  if (reason == v1::EXIT_REASON_UNSPECIFIED) {
    reason = !signalled                ? v1::EXIT_REASON_EXITED
             : exited.code() == SIGSYS ? v1::EXIT_REASON_SANDBOX
                                       : v1::EXIT_REASON_SIGNALLED;
  }
  if (cgroup_ != nullptr) {
    peak = std::max(peak, cgroup_->PeakMemoryBytes());
    if (cgroup_->MemoryLimitHit()) {
      reason = v1::EXIT_REASON_MEMORY_LIMIT;
    } else if (role_ == "run" && cgroup_->TaskLimitHit()) {
      reason = v1::EXIT_REASON_SANDBOX;
      exited.set_stderr_tail(
          absl::StrCat("more than ", max_tasks_, " processes and threads"));
    }
  }
  exited.set_reason(reason);
  exited.set_peak_memory_bytes(peak);
  if (limit_.has_value()) exited.set_starved_ns(limit_->starved_ns());
  return exited;
}

}  // namespace regatta
