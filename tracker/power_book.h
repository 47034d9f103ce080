// Power cycles, as a state machine: which command is to be sent to which board
// now, when a cycle has worked, and when a board is given up.
//
// A command is a request, not a result: only the board's return with another
// boot id proves a cycle, and only its agent's presence that it was switched
// on. Until then it is sent again every 30 s; after 300 s the board is broken,
// counted from the first command: what its unit has to do for others before is
// no time of the board. None is left between the two steps of a cycle.
// Commands of one power unit never overlap, since many units take one session
// at a time; whoever waits longest is next, but after the second steps of
// cycles that were begun. At most 2 cycles an hour and 6 a day for a board.
//
// Not thread-safe.
#ifndef REGATTA_TRACKER_POWER_BOOK_H_
#define REGATTA_TRACKER_POWER_BOOK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "tracker/config/fleet_config.h"

namespace regatta {

enum class PowerVerb { kOff, kOn, kCycle };
std::string PowerVerbName(PowerVerb verb);  // "off"

// A command to carry out now; answered by PowerBook::Done.
struct PowerSend {
  std::string device_id;
  std::string unit;
  PowerCommand command;
  // Of the first command that ends with a boot: when the board is given up.
  std::optional<SteadyTime> back_by;
};

class PowerBook {
 public:
  static constexpr absl::Duration kResend = absl::Seconds(30);
  static constexpr absl::Duration kGiveUp = absl::Seconds(300);
  static constexpr absl::Duration kOffTime = absl::Seconds(10);
  static constexpr int kCyclesInAnHour = 2;
  static constexpr int kCyclesInADay = 6;

  explicit PowerBook(std::map<std::string, PowerHook> hooks)
      : hooks_(std::move(hooks)) {}

  // FailedPrecondition: the board has no such hook, or a cycle is under way.
  // ResourceExhausted: it had its cycles. Names the board, says what to do.
  absl::Status Check(const std::string& device_id, PowerVerb verb,
                     SteadyTime now) const;
  // REQUIRES: Check(...).ok().
  void Start(const std::string& device_id, PowerVerb verb, SteadyTime now);
  // A cycle of a tracker that was restarted since.
  void Recall(const std::string& device_id, SteadyTime at);

  // Commands to send now; each is sent once.
  std::vector<PowerSend> Due(SteadyTime now);
  // The command that Due gave for the board has ended. True: it was to switch
  // it off, and nothing more is awaited.
  bool Done(const std::string& device_id, SteadyTime now);
  // What a tracker began at that time and did not see end: done anew, from its
  // first step. What should have ended by now has kGiveUp from now on, and
  // kResend first, within which a board that is there after all says so. False:
  // the board has no such hook any more.
  bool Resume(const std::string& device_id, PowerVerb verb, SteadyTime at,
              SteadyTime now);
  // The board is back with another boot id. True: that was awaited; a boot
  // before the last command was sent proves nothing.
  bool Booted(const std::string& device_id);
  // The board's agent is here, after whatever boot: it has power. True: that
  // was awaited, or is enough for what is resumed late.
  bool Seen(const std::string& device_id);
  // The board is known no more. What was sent for it still holds its unit until
  // Done.
  void Forget(std::string_view device_id);
  // Boards that were given up now; they are forgotten here.
  std::vector<std::string> GiveUps(SteadyTime now);
  // This process was stalled: boards have that much longer.
  void ExtendBy(absl::Duration stall);
  bool Busy(std::string_view device_id) const {
    return tasks_.contains(device_id);
  }

 private:
  struct Task {
    PowerVerb verb;
    SteadyTime started;  // of the first command, once that is sent
    SteadyTime send_at;
    bool sending = false;
    bool sent = false;      // the first command
    bool is_off = false;    // of a cycle in two steps: the first is done
    bool complete = false;  // the last step was sent: a boot is its proof
    bool late = false;      // resumed so, and nothing sent since
  };
  // The board may be off now, and its task is to switch it on.
  bool Halfway(const PowerHook& hook, const Task& task) const;
  const PowerCommand& Next(const PowerHook& hook, const Task& task) const;

  const std::map<std::string, PowerHook> hooks_;
  std::map<std::string, Task, std::less<>> tasks_;
  std::set<std::string> busy_units_;
  std::map<std::string, std::deque<SteadyTime>> cycles_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_POWER_BOOK_H_
