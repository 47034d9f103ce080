// Keeps daemons running as direct children of this process.
//
// One daemon is described by a DaemonSpec; the supervisor starts them in order,
// restarts what dies, and stops them in reverse order. A daemon that dies
// before it was ever ready is not restarted: its last log line says why.
//
// A daemon's log is bounded: at its limit what it holds moves to LOG.1, over
// what was there; a line that is written in that moment may be missing.
//
// Children get SIGTERM when this process dies, however it dies.
//
// Not thread-safe: everything happens on the thread that calls.
#ifndef REGATTA_CLIENT_CLI_SUPERVISOR_H_
#define REGATTA_CLIENT_CLI_SUPERVISOR_H_

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace regatta::cli {

struct DaemonSpec {
  std::string name;
  std::string program;  // path
  std::vector<std::string> arguments;
  std::string log_path;  // standard output and error are appended here
  int64_t log_limit = int64_t{32} << 20;  // bytes; twice that with LOG.1
  // What stops it at once, one after the other; each another signal.
  std::vector<int> stop_signals = {SIGTERM};
  // Whether it serves now; asked until it is first true.
  std::function<bool()> ready;
};

class Supervisor {
 public:
  static constexpr absl::Duration kReadyLimit = absl::Seconds(20);
  static constexpr absl::Duration kFirstRestartDelay = absl::Milliseconds(100);
  static constexpr absl::Duration kLongestRestartDelay = absl::Seconds(5);
  // A daemon that ran this long is restarted at once again.
  static constexpr absl::Duration kCalmAfter = absl::Seconds(30);
  // After its stop_signals; then SIGKILL.
  static constexpr absl::Duration kStopLimit = absl::Seconds(4);

  explicit Supervisor(const Clock& clock) : clock_(clock) {}
  ~Supervisor();

  // Starts a daemon and waits until it is ready. FailedPrecondition with its
  // last log line when it dies first; DeadlineExceeded after kReadyLimit;
  // Cancelled when `stop` says so.
  absl::Status Start(DaemonSpec spec, const std::function<bool()>& stop);
  // Reaps and restarts what died, and bounds logs; call often. `log` gets a
  // line per event.
  void Tend(const std::function<void(const std::string&)>& log);
  // Ends all, last started first.
  void StopAll();

 private:
  struct Daemon {
    DaemonSpec spec;
    pid_t pid = -1;         // -1: not running
    int64_t log_start = 0;  // where in its log this run begins
    SteadyTime started;
    SteadyTime restart_at;
    absl::Duration delay = kFirstRestartDelay;
  };

  absl::Status Launch(Daemon& daemon);
  static absl::Status BoundLog(Daemon& daemon);

  const Clock& clock_;
  std::vector<Daemon> daemons_;
};

// The last line that is not empty of what a file holds from byte `from` on; ""
// when there is none.
std::string LastLine(const std::string& path, int64_t from = 0);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_SUPERVISOR_H_
