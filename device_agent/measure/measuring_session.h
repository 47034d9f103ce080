// Measuring sessions: stretches of time in which a board kept its speed.
//
// A small kernel of the agent's own, the reference, is timed when a session
// begins and again while trials are timed: after kResults of them, or once the
// first has waited for kHold, or when there is nothing else to time, and before
// the first trial after kAge without any. Results wait for it. When it moved by
// more than the tolerance, max(3 %, twice the noise floor), every time taken
// since the last good one is doubtful and the session is closed; the next one
// begins when two timings of the reference agree again.
//
// One look at the reference that seems off proves nothing, since a build beside
// it may have slowed it: the session is closed only when kLooks further ones,
// with all cores of the device empty, agree with the first. When they do not,
// what the first found is known as what builds do to it, and passes from then
// on; so that no drift hides there, a look with empty cores is due every kAge.
//
// A pure state machine: clock, reference and waiting come in. Not thread-safe,
// but for SetNoiseFloor.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_MEASURING_SESSION_H_
#define REGATTA_DEVICE_AGENT_MEASURE_MEASURING_SESSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"

namespace regatta {

class MeasuringSession {
 public:
  static constexpr int kResults = 16;
  static constexpr absl::Duration kHold = absl::Seconds(1);
  static constexpr absl::Duration kAge = absl::Seconds(60);
  static constexpr double kLeastTolerance = 0.03;
  // Of a board whose noise floor is not known: the most that one may be.
  static constexpr double kUnknownNoise = 0.1;
  static constexpr int kLooks = 2;
  static constexpr absl::Duration kBetweenLooks = absl::Milliseconds(50);
  // Settling: steps, and how long it is waited for. A board that does not
  // settle begins a session all the same, which then is a short one.
  static constexpr absl::Duration kSettleStep = absl::Milliseconds(200);
  static constexpr absl::Duration kLongestSettling = absl::Seconds(10);

  struct Parts {
    std::string board;             // what ids begin with: "BOARD/1", "BOARD/2"
    const Clock* clock = nullptr;  // outlives the session
    // Nanoseconds of the reference now; `alone`: with nothing else on the
    // device's cores. Absent: it cannot be timed now.
    std::function<std::optional<double>(bool alone)> time_reference;
    std::function<void(absl::Duration)> pause;
  };
  explicit MeasuringSession(Parts parts) : parts_(std::move(parts)) {}

  // Absent: unknown.
  void SetNoiseFloor(std::optional<double> noise_floor) {
    noise_floor_ = noise_floor.value_or(kUnknownNoise);
  }
  double Tolerance() const;

  // Before a run: begins a session where none is open; sees to one that was not
  // looked after for kAge.
  void Begin();
  // A time was taken. REQUIRES: Begin.
  void Timed();
  // When the times taken since the last good look are to be proven; absent:
  // there are none.
  std::optional<SteadyTime> due() const { return due_; }
  bool Due() const {
    return due_.has_value() &&
           (unproven_ >= kResults || parts_.clock->Steady() >= *due_);
  }
  // Looks at the reference. "": the times taken since the last good look hold.
  // Else why they do not, for people; the session is closed.
  std::string Prove();

  // Of the open session; "", 0 where the reference cannot be timed.
  const std::string& id() const { return id_; }
  double reference_ns() const { return reference_ns_; }
  int64_t closed() const { return closed_; }  // by drift
  // Of the one closed last: how far the reference moved, as a fraction.
  double last_drift() const { return last_drift_; }

 private:
  void Open();
  double Moved(double now) const;
  // As Prove, whatever was timed.
  std::string Look();
  // Whether the reference seems to be as it was, builds beside it or none.
  bool SeemsWell();

  const Parts parts_;
  std::atomic<double> noise_floor_ = kUnknownNoise;
  std::string id_;
  double reference_ns_ = 0;
  double last_drift_ = 0;
  std::optional<double> beside_ns_;  // with builds beside it, once known
  bool open_ = false, unsettled_ = false;
  int64_t opened_ = 0, closed_ = 0;
  SteadyTime looked_;        // at the reference
  SteadyTime looked_alone_;  // with empty cores
  int unproven_ = 0;
  std::optional<SteadyTime> due_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_MEASURING_SESSION_H_
