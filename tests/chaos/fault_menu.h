// The faults of a run: one is drawn and begun at a time, each ends by itself.
//
// Not thread-safe.
#ifndef REGATTA_TESTS_CHAOS_FAULT_MENU_H_
#define REGATTA_TESTS_CHAOS_FAULT_MENU_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "tests/chaos/cluster.h"

namespace regatta::testing {

class FaultMenu {
 public:
  // `disks`: disks can be filled.
  FaultMenu(Cluster* cluster, bool disks, uint64_t seed);

  // Draws a fault and begins it. What it is and how long it lasts, for people
  // ("stop agent-1 for 3.2s"). The draws depend on the seed alone; whether
  // there is, say, a daemon to kill does not.
  std::string Begin();
  // Ends those whose time is over, and kills what was not there before. To be
  // called often.
  void EndDue();
  void EndAll();

  // How many of each kind were done: "kill server", "delay".
  const std::map<std::string, int64_t>& done() const { return done_; }

 private:
  struct Active {
    SteadyTime until;
    std::function<void()> undo;
  };
  // A worker to be killed as soon as it is there: run workers live for
  // milliseconds.
  struct Prey {
    SteadyTime until;
    std::string daemon, worker;
  };
  bool KillNow(const Prey& prey);
  std::string Kill();
  std::string Stop();
  std::string Cut();
  std::string HalfOpen();
  std::string Slow();
  std::string Refuse();
  std::string FillDisk();
  // Short ones often, and some that outlast a lease.
  absl::Duration Span();
  const std::string& Draw(const std::vector<std::string>& names) {
    return names[random_.Below(names.size())];
  }
  std::string Last(const std::string& what, absl::Duration span,
                   std::function<void()> undo);

  Cluster* const cluster_;
  const bool disks_;
  Random random_;
  std::vector<Active> active_;
  std::vector<Prey> prey_;
  std::map<std::string, int64_t> done_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_CHAOS_FAULT_MENU_H_
