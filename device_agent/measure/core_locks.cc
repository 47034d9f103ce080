#include "device_agent/measure/core_locks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

constexpr auto kAskCancelled = std::chrono::milliseconds(20);
constexpr char kUse[] = "lock";
constexpr char kTurn[] = "turn";

absl::Status FileError(const std::string& path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("core lock ", path, ": ", strerror(error)));
}

// Never with O_CREAT what is there already: in a folder that everybody may
// write, the kernel refuses that to all but the file's owner
// (fs.protected_regular).
absl::StatusOr<UniqueFd> OpenOrMake(const std::string& path) {
  for (;;) {
    UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (file.valid()) return file;
    if (errno != ENOENT) return FileError(path, errno);
    file.Reset(open(path.c_str(),
                    O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                    0444));
    if (file.valid()) {
      // Whatever the umask: every user must be able to open it.
      fchmod(file.get(), 0444);
      return file;
    }
    if (errno != EEXIST) return FileError(path, errno);
  }
}

// False when somebody cleaned the folder: the next taker would lock another
// file of the same name.
bool StillThere(int file, const std::string& path) {
  struct stat held, named;
  return fstat(file, &held) == 0 && stat(path.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

int LockFile(int file, int operation) {
  while (flock(file, operation) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// flock cannot be given up once it waits, so it waits on a thread of its own.
// The kernel wakes it at once: asking again and again would cost the timed run
// that is waited for.
//
// A wait that is given up is kept for the next taker of the same lock: a lock
// that somebody holds for hours costs as many threads as wanted it at once, not
// one for each that gave up. When nobody takes it over, the lock is given back
// as it comes.
class LockWaits {
 public:
  // Never destroyed: its threads may outlive main.
  static LockWaits& Get() {
    static LockWaits* const all = new LockWaits;
    return *all;
  }

  absl::StatusOr<UniqueFd> Wait(UniqueFd file, int operation,
                                const std::string& path,
                                const std::function<bool()>& cancelled) {
    // A child has the table, but not the threads.
    const Key key = {getpid(), path, operation};
    std::unique_lock<std::mutex> lock(mutex_);
    const std::shared_ptr<Lock> wanted = Begin(key, std::move(file));
    while (!wanted->done) {
      lock.unlock();
      const bool stop = cancelled();
      lock.lock();
      if (stop) {
        if (!wanted->done) given_up_.emplace(key, wanted);
        return absl::CancelledError("stopped");
      }
      wanted->changed.wait_for(lock, kAskCancelled,
                               [&] { return wanted->done; });
    }
    if (wanted->error != 0) return FileError(path, wanted->error);
    return std::move(wanted->file);
  }

 private:
  using Key = std::tuple<pid_t, std::string, int>;  // of whom, path, operation
  struct Lock {
    explicit Lock(UniqueFd wanted) : file(std::move(wanted)) {}
    UniqueFd file;
    std::condition_variable changed;
    bool done = false;
    int error = 0;
  };

  // One that was given up, or a new one; with mutex_ held.
  std::shared_ptr<Lock> Begin(const Key& key, UniqueFd file) {
    if (const auto found = given_up_.find(key); found != given_up_.end()) {
      std::shared_ptr<Lock> wanted = std::move(found->second);
      given_up_.erase(found);
      return wanted;
    }
    auto wanted = std::make_shared<Lock>(std::move(file));
    std::thread([this, key, wanted, fd = wanted->file.get()] {
      const int error = LockFile(fd, std::get<2>(key));
      std::lock_guard<std::mutex> lock(mutex_);
      wanted->error = error;
      wanted->done = true;
      wanted->changed.notify_all();
      std::erase_if(given_up_,
                    [&](const auto& entry) { return entry.second == wanted; });
    }).detach();
    return wanted;
  }

  std::mutex mutex_;  // guards what follows and all locks
  std::multimap<Key, std::shared_ptr<Lock>> given_up_;
};

}  // namespace

std::string DefaultLockFolder() {
  constexpr char kSystemFolder[] = "/run/lock";
  struct stat info;
  const bool for_all = stat(kSystemFolder, &info) == 0 &&
                       S_ISDIR(info.st_mode) && (info.st_mode & 0003) == 0003;
  return for_all ? kSystemFolder : "/tmp";
}

std::vector<int> CoreLocks::Held::fds() const {
  std::vector<int> fds;
  for (const UniqueFd& file : files_) fds.push_back(file.get());
  return fds;
}

std::string CoreLocks::Path(int cpu, const char* suffix) const {
  return absl::StrCat(folder_, "/regatta-cpu-", cpu, ".", suffix);
}

absl::Status CoreLocks::Check(const std::vector<int>& cpus) const {
  for (int cpu : cpus) {
    for (const char* suffix : {kUse, kTurn}) {
      RETURN_IF_ERROR(OpenOrMake(Path(cpu, suffix)).status());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> CoreLocks::Lock(
    int cpu, const char* suffix, int operation,
    const std::function<bool()>& cancelled) const {
  const std::string path = Path(cpu, suffix);
  for (;;) {
    ASSIGN_OR_RETURN(UniqueFd file, OpenOrMake(path));
    const int error = LockFile(file.get(), operation | LOCK_NB);
    if (error == EWOULDBLOCK) {
      ASSIGN_OR_RETURN(file, LockWaits::Get().Wait(std::move(file), operation,
                                                   path, cancelled));
    } else if (error != 0) {
      return FileError(path, error);
    }
    if (StillThere(file.get(), path)) return file;
  }
}

absl::StatusOr<CoreLocks::Held> CoreLocks::Take(
    const std::vector<int>& cpus, Use use,
    const std::function<bool()>& cancelled) const {
  CHECK(std::is_sorted(cpus.begin(), cpus.end()));
  const int operation = use == Use::kBuild ? LOCK_SH : LOCK_EX;
  std::vector<UniqueFd> files;
  for (int cpu : cpus) {
    // Given back as soon as the processor is had.
    ASSIGN_OR_RETURN(const UniqueFd turn, Lock(cpu, kTurn, LOCK_EX, cancelled));
    ASSIGN_OR_RETURN(UniqueFd file, Lock(cpu, kUse, operation, cancelled));
    files.push_back(std::move(file));
  }
  return Held(std::move(files));
}

CorePlan::CorePlan(std::vector<int> all) : cpus(std::move(all)) {
  CHECK(!cpus.empty() && std::is_sorted(cpus.begin(), cpus.end()));
}

int CorePlan::builders() const {
  // One core is left for the usual timed run of one thread.
  return std::clamp(static_cast<int>(cpus.size()) - 1, 1, kMaxBuilders);
}

std::vector<int> CorePlan::TimingCpus(int threads) const {
  CHECK(threads >= 1 && threads <= static_cast<int>(cpus.size())) << threads;
  return std::vector<int>(cpus.end() - threads, cpus.end());
}

}  // namespace regatta
