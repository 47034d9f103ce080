// The way between a board's agent and its tracker, on a simulated clock: like
// TCP it keeps order and loses nothing while it lives, but either direction may
// stand still without anybody being told, and messages may come late.
//
// Not thread-safe.
#ifndef REGATTA_TESTS_FAULTS_LINK_H_
#define REGATTA_TESTS_FAULTS_LINK_H_

#include <deque>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/random.h"
#include "regatta/v1/fleet_service.pb.h"
#include "tracker/actions.h"

namespace regatta::faults {

// What is wrong with a link now; read anew for every message.
struct LinkFaults {
  // Nothing arrives at that end, not even the end of a connection, and new
  // connections do not come about. What was sent arrives once it is over.
  bool to_tracker_blocked = false;
  bool to_agent_blocked = false;
  absl::Duration latency = absl::Milliseconds(1);
  // A message comes twice, overtakes others or is followed by one of earlier,
  // also of earlier connections: each with this probability. No transport of
  // ours does that; what it carries must bear it all the same.
  double mangle = 0;

  void BlockBoth(bool blocked) {
    to_tracker_blocked = to_agent_blocked = blocked;
  }
};

// The messages of one direction of one connection.
template <typename Message>
class Lane {
 public:
  bool empty() const { return queue_.empty(); }
  void Clear() { queue_.clear(); }

  // `past`: what went over the link before, for replays; this is added to it.
  void Push(Message message, SteadyTime now, const LinkFaults& faults,
            Random& random, std::vector<Message>* past) {
    const auto chance = [&] { return random.Unit() < faults.mangle; };
    const auto put = [&](size_t place, const Message& one) {
      queue_.insert(queue_.begin() + static_cast<long>(place),
                    Flight{now + faults.latency, one});
    };
    if (!greeted_ || faults.mangle <= 0) {
      greeted_ = true;
      put(queue_.size(), message);
    } else {
      // The first of a connection (Hello, Welcome) stays the first: without it
      // the rest would not be looked at.
      const size_t first =
          !queue_.empty() && IsGreeting(queue_.front().message) ? 1 : 0;
      put(chance() ? first + random.Below(queue_.size() - first + 1)
                   : queue_.size(),
          message);
      if (chance()) put(queue_.size(), message);
      if (chance() && !past->empty()) {
        put(queue_.size(), (*past)[random.Below(past->size())]);
      }
    }
    if (faults.mangle > 0 && past->size() < kPast && !IsGreeting(message)) {
      past->push_back(std::move(message));
    }
  }
  // The next one, if it is due.
  bool Pop(SteadyTime now, Message* message) {
    if (queue_.empty() || queue_.front().at > now) return false;
    *message = std::move(queue_.front().message);
    queue_.pop_front();
    return true;
  }

 private:
  static constexpr size_t kPast = 2000;
  static bool IsGreeting(const v1::AgentMessage& m) { return m.has_hello(); }
  static bool IsGreeting(const v1::TrackerMessage& m) {
    return m.has_welcome() || m.has_goodbye();
  }
  struct Flight {
    SteadyTime at;
    Message message;
  };
  std::deque<Flight> queue_;
  bool greeted_ = false;
};

// Each end closes for itself and hears of the other's closing later, or never.
struct Connection {
  SessionId session;
  bool established = false;  // the tracker knows of it
  bool agent_closed = false;
  bool tracker_closed = false;
  bool tracker_told = false;  // that the agent closed
  bool agent_told = false;
  absl::Status tracker_status;
  Lane<v1::AgentMessage> up;
  Lane<v1::TrackerMessage> down;

  bool Over() const {
    return (agent_closed || agent_told) &&
           (tracker_closed || tracker_told || !established);
  }
};

}  // namespace regatta::faults

#endif  // REGATTA_TESTS_FAULTS_LINK_H_
