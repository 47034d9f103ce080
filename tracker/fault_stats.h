// How often boards fail, and whether that is the board's doing: failures of the
// device class (faults over the latest trials, unannounced reboots in an hour)
// of each board, compared with the other boards of its class. A stream of bad
// candidates fails everywhere, and takes no board out of the fleet. Of a board
// that is alone in its class only reboots can be judged.
//
// Sums are kept for each class, so that neither a trial nor a judgement costs
// more in a class of thousands.
//
// Not thread-safe.
#ifndef REGATTA_TRACKER_FAULT_STATS_H_
#define REGATTA_TRACKER_FAULT_STATS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "tracker/indexed_map.h"

namespace regatta {

class FaultStats {
 public:
  static constexpr size_t kWindow = 50;  // trials
  // Fewer say nothing about a board as a member of its class.
  static constexpr size_t kEnough = 10;
  static constexpr int kInARow = 3;
  static constexpr double kTooMany = 0.20;
  static constexpr double kClassIsWell = 0.05;  // median of the others
  static constexpr int kRebootsInAnHour = 3;    // more are too many
  // Median of the others up to which the class is well: as far below the bound
  // as that of faults.
  static constexpr int kClassReboots = 1;

  // The board belongs to this class from now on; "": to none, it is not there.
  void Place(const std::string& device_id, const std::string& device_class);
  // A trial ended on the board, or the board failed during it.
  void Add(const std::string& device_id, bool fault);
  void Rebooted(const std::string& device_id, SteadyTime now);
  // What the board did before says no more about it.
  void Reset(const std::string& device_id);

  // Why the board is to be quarantined, in words; "": it is not.
  std::string WhyQuarantine(std::string_view device_id, SteadyTime now);

  // CHECKs the sums of the classes against the boards.
  void CheckSums() const;

 private:
  struct Board {
    std::string device_class;  // "": not there
    std::deque<bool> trials;   // whether each was a fault; the latest last
    int64_t faults = 0;        // among them
    int in_a_row = 0;
    // Unannounced, of the last hour as of the latest; and the latest but
    // kClassReboots, from which an hour long the board has more than that.
    std::deque<SteadyTime> reboots;
    std::optional<SteadyTime> restless;
  };
  struct Class {
    int64_t boards = 0;
    int64_t judged = 0;  // with enough trials
    int64_t well = 0;    // of these, below kClassIsWell
    // Boards with more than kClassReboots, perhaps longer ago than an hour.
    std::set<std::pair<SteadyTime, std::string>> restless;
  };
  static double Rate(const Board& board);
  static bool Judged(const Board& board);
  static bool Well(const Board& board);
  // Adds the board to the sums of its class, or takes it out.
  void Count(const std::string& device_id, const Board& board, int64_t sign);
  // Whether the median of the others is low. Of trials: of those with enough.
  bool ClassIsWell(const Board& board) const;
  bool ClassBootsWell(const Board& board, SteadyTime now);

  IndexedMap<std::string, Board> boards_;
  std::map<std::string, Class, std::less<>> classes_;
};

// The tracker quarantines the devices of no more than max(1, 10 %) of a class's
// agents in ten minutes (people may more): above that the cause is the software
// or the stream, so the class gets no work of jobs until somebody lifts the
// brake or ten minutes have passed.
class ClassBrake {
 public:
  static constexpr absl::Duration kWindow = absl::Minutes(10);

  // Whether a device of this agent may be taken out now, of a class that so
  // many agents serve; counts the agent if so, once: its devices are one
  // machine.
  bool TakeOut(const std::string& device_class, const std::string& agent_id,
               int agents, SteadyTime now);
  // Counts one that was taken out before this process began.
  void Recall(const std::string& device_class, const std::string& agent_id,
              SteadyTime at);

  // True when it was not stopped already.
  bool Stop(const std::string& device_class, const std::string& why,
            SteadyTime now);
  // True when it was stopped.
  bool Lift(const std::string& device_class);
  // Why the class gets no work; "": it does.
  std::string Why(std::string_view device_class) const;
  // This process was stalled: nothing was seen of any class meanwhile.
  void ExtendBy(absl::Duration stall);
  // Classes that have been stopped for ten minutes. Forgets those of which
  // nothing counts any more.
  std::vector<std::string> Due(SteadyTime now);

 private:
  struct Class {
    std::map<std::string, SteadyTime> taken_out;  // agents
    std::string why;
    SteadyTime stopped;
  };
  static void DropOld(Class& c, SteadyTime now);

  std::map<std::string, Class, std::less<>> classes_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_FAULT_STATS_H_
