// A real tracker and a real server, as processes on loopback, and what they
// cost.
#ifndef REGATTA_TESTS_FLEET_SIM_DAEMONS_H_
#define REGATTA_TESTS_FLEET_SIM_DAEMONS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/process.h"

namespace regatta::fleet_sim {

// Of a process: memory now and at most, processor time so far, open files.
struct ProcessCost {
  int64_t rss_bytes = 0;
  int64_t peak_bytes = 0;
  absl::Duration cpu;
  int64_t threads = 0;
};
ProcessCost CostOf(pid_t pid);

class Daemons {
 public:
  // State below `dir`; more words for their command lines.
  Daemons(std::string dir, std::vector<std::string> tracker_arguments,
          std::vector<std::string> server_arguments);

  // The tracker begins to listen soon after.
  void StartTracker();
  void StartServer();
  // SIGKILL.
  void KillTracker();
  // SIGTERM; false when it does not end by itself with status 0.
  bool StopTracker();
  bool StopServer();
  // Empty while both run; else what they said last.
  std::string Death();

  std::string tracker() const;  // HOST:PORT
  std::string server() const;
  std::string log() const { return dir_ + "/tuning.db"; }
  pid_t tracker_pid() const { return tracker_->pid(); }
  pid_t server_pid() const { return server_->pid(); }

 private:
  const std::string dir_;
  const std::vector<std::string> tracker_arguments_, server_arguments_;
  const int tracker_port_, server_port_;
  std::unique_ptr<testing::Process> tracker_, server_;
};

}  // namespace regatta::fleet_sim

#endif  // REGATTA_TESTS_FLEET_SIM_DAEMONS_H_
