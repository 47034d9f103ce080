// A real tracker and a real server, as processes on loopback, and what they
// cost.
#ifndef REGATTA_TESTS_FLEET_SIM_DAEMONS_H_
#define REGATTA_TESTS_FLEET_SIM_DAEMONS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/daemons.h"

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
  void StartTracker() { daemons_.Start("tracker"); }
  void StartServer() { daemons_.Start("server"); }
  // SIGKILL.
  void KillTracker() { daemons_.Kill("tracker"); }
  // SIGTERM; false when it does not end by itself with status 0.
  bool StopTracker() { return daemons_.Stop("tracker").empty(); }
  bool StopServer() { return daemons_.Stop("server").empty(); }
  // Empty while both run; else what they said last.
  std::string Death() { return daemons_.Death(); }

  std::string tracker() const { return daemons_.tracker(); }  // HOST:PORT
  std::string server() const { return daemons_.server(); }
  std::string log() const { return daemons_.log(); }
  pid_t tracker_pid() const { return daemons_.process("tracker").pid(); }
  pid_t server_pid() const { return daemons_.process("server").pid(); }

 private:
  testing::Daemons daemons_;
};

}  // namespace regatta::fleet_sim

#endif  // REGATTA_TESTS_FLEET_SIM_DAEMONS_H_
