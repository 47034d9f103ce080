// Server, tracker and agents as processes of this one, with a proxy on each way
// to the tracker and, where it can be had, a small disk under each state.
//
// Not thread-safe.
#ifndef REGATTA_TESTS_CHAOS_CLUSTER_H_
#define REGATTA_TESTS_CHAOS_CLUSTER_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/random.h"
#include "tests/chaos/ack_tap.h"
#include "tests/chaos/small_disk.h"
#include "tests/support/daemons.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/process.h"

namespace regatta::testing {

class Cluster {
 public:
  static constexpr int kAgents = 3;
  static constexpr char kDeviceClass[] = "chaos";
  // Of the tracker; the least that a fleet may stand still after its faults is
  // a few of these.
  static constexpr absl::Duration kLease = absl::Seconds(8);

  // `folder`: everything of it. `disks`: small ones (OwnMounts was called).
  Cluster(std::string folder, std::string programs, bool disks, uint64_t seed);

  // Starts all of it. Errors name what failed.
  absl::Status Start();
  // "tracker", "server", "agent-0" ...; each has a small disk.
  const std::vector<std::string>& daemons() const { return daemons_.names(); }
  // Those with a proxy to the tracker: all daemons but itself.
  std::vector<std::string> links() const;

  // Starts again, a moment later, what has ended. To be called often.
  void Tend();
  // At once.
  void StartAll();
  // -1: not running. `worker`: "" for the daemon itself, else a program below
  // an agent, "regatta-spawner" or one that this started.
  pid_t PidOf(const std::string& daemon, const std::string& worker = "") const;
  FaultProxy& link(const std::string& daemon) { return *links_.at(daemon); }
  SmallDisk& disk(const std::string& daemon) { return disks_.at(daemon); }
  const AckTap& acks() const { return tap_; }
  int64_t restarts() const { return restarts_; }

  // SIGTERM for all; what they do not do within their time, one line each.
  std::vector<std::string> Stop() { return daemons_.StopAll(kStopLimit); }
  // Processes that have anything of this cluster in their command line.
  std::vector<pid_t> Left() const { return daemons_.Left(); }

  // A command of `regatta` against the server, which may be away.
  std::unique_ptr<Process> Ask(std::vector<std::string> arguments) const {
    return daemons_.Ask(std::move(arguments));
  }
  std::string LogsFolder() const { return daemons_.LogsFolder(); }

 private:
  static constexpr absl::Duration kStopLimit = absl::Seconds(10);

  absl::Status AddLink(const std::string& name, FaultProxy::Tap tap);

  const bool small_disks_;
  Random random_;
  AckTap tap_;
  std::map<std::string, std::unique_ptr<FaultProxy>> links_;
  std::map<std::string, SmallDisk> disks_;
  Daemons daemons_;
  std::map<std::string, SteadyTime> start_at_;  // of those that have ended
  int64_t restarts_ = 0;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_CHAOS_CLUSTER_H_
