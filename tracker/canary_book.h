// Canaries: known-good kernels with their default schedules, which prove that a
// board still computes what it should at the speed that it had. A server offers
// them by kind of board; what a board took for each is kept in its
// DeviceStanding.
//
// Not thread-safe.
#ifndef REGATTA_TRACKER_CANARY_BOOK_H_
#define REGATTA_TRACKER_CANARY_BOOK_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "regatta/v1/device_control.pb.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "regatta/v1/fleet_service.pb.h"
#include "tracker/dispatch_queue.h"

namespace regatta {

// The part before the slash of every canary's assignment id. No server has it.
inline constexpr char kCanaryServer[] = "~canary";

// How much slower than its own median a board may be before a canary counts as
// failed: with clocks that its agent controls, and without. Never below the
// board's noise floor.
inline constexpr double kCanarySlack = 0.05;
inline constexpr double kCanarySlackUncontrolled = 0.10;
// Processors that something else than the canary kept busy while it ran: with
// more, that it was slow may be the doing of others, for whom memory is shared.
inline constexpr double kCanaryOthersBusy = 0.5;
// Times of a canary that the median is taken over, the latest; and from how
// many on there is one.
inline constexpr int kCanaryTimes = 9;
inline constexpr int kCanaryBaseline = 3;

class CanaryBook {
 public:
  static constexpr int kMaxPerKind = 4;
  static constexpr int kMaxPerClass = 32;  // of all targets; more are dropped
  static constexpr size_t kMaxKinds = 1024;

  // InvalidArgument names the canary and the field.
  static absl::Status Check(const v1::Canaries& canaries);
  // Replaces those of the kinds of board that are named.
  void Offer(const v1::Canaries& canaries);

  // The trials of a round on this board, with ids of their own; empty: there is
  // no canary for it, or only for another target.
  std::vector<v1::TrialSpec> Round(const MatchKey& key,
                                   const v1::DeviceInfo& info,
                                   std::string_view assignment_id) const;
  bool Has(const MatchKey& key, const v1::DeviceInfo& info) const;

 private:
  // By kind of board; targets differ within a class.
  std::map<MatchKey, std::vector<v1::Canary>> kinds_;
};

// What a canary's result says of the board; the worst of a round counts.
enum class CanaryVerdict {
  kPassed,
  kVoid,       // says nothing: cancelled, or the board's builder refuses it
  kDisturbed,  // slow, while the machine was busy with something else
  kSlow,       // right, but slower than the board was
  kFailed,     // wrong, crashed, hung, faulted
};
struct CanaryJudgement {
  CanaryVerdict verdict = CanaryVerdict::kPassed;
  std::string why;  // of all but kPassed: "compute: wrong_result: ..."
};
// Notes the time in `standing`: of passes always, of slow ones never.
CanaryJudgement JudgeCanary(const v1::TrialResult& result,
                            const v1::DeviceInfo& info,
                            v1::DeviceStanding* standing);

// The board's times so far count no more: they start over.
void ForgetCanaryTimes(v1::DeviceStanding* standing);

}  // namespace regatta

#endif  // REGATTA_TRACKER_CANARY_BOOK_H_
