// Carries out power commands: programs and URLs that an operator configured.
// Each runs on a thread of its own; the core sees to it that one power unit has
// one at a time.
//
// Thread-safe.
#ifndef REGATTA_TRACKER_POWER_RUNNER_H_
#define REGATTA_TRACKER_POWER_RUNNER_H_

#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tracker/config/fleet_config.h"

namespace regatta {

// Runs the program, without a shell and with nothing on its standard input;
// what it prints, cut and with control characters written out, is in the error,
// or in the log when it succeeds. Or posts to the URL. OK: exit code 0, or an
// answer 2xx. DeadlineExceeded: killed after `limit`. Blocks.
absl::Status RunPowerCommand(const PowerCommand& command, absl::Duration limit);

class PowerRunner {
 public:
  static constexpr absl::Duration kLimit = absl::Seconds(20);

  // `done` is called from any thread, once for each Run.
  using Done =
      std::function<void(const std::string& device_id, const absl::Status&)>;
  explicit PowerRunner(Done done) : done_(std::move(done)) {}
  ~PowerRunner() { Stop(); }

  // Waits for what runs; nothing is run after it.
  void Stop();
  void Run(const std::string& device_id, const PowerCommand& command);

 private:
  struct Running {
    std::thread thread;
    bool ended = false;
  };
  const Done done_;
  std::mutex mutex_;
  std::list<Running> running_;
  bool stopped_ = false;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_POWER_RUNNER_H_
