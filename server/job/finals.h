// The end of a task: which schedules are raced, and the verdict of the
// confirmation. Pure functions over results.
#ifndef REGATTA_SERVER_JOB_FINALS_H_
#define REGATTA_SERVER_JOB_FINALS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/robust_stats.h"
#include "regatta/v1/trial.pb.h"
#include "server/job/task_results.h"

namespace regatta {

// Schedules in one race, at most.
inline constexpr int kRaceSize = 6;
// Winners of the race that go into the confirmation: two, because the race's
// first may fail on the second set of inputs.
inline constexpr int kFinalists = 2;

// The fastest usable schedules by their latest time, fastest first, at most
// `limit`; neither the default, nor `except`, nor two with the same code.
std::vector<std::string> FastestSchedules(const TaskResults& results, int limit,
                                          const std::string& except = "");

// Time per call of each kept block, by round; rounds that were throttled are
// absent.
std::vector<std::optional<double>> RoundTimes(const v1::TrialResult& result);

// a over b in time, from the rounds that both kept. Absent with no such round.
struct Comparison {
  Ratio ratio;
  int rounds = 0;
};
std::optional<Comparison> Compare(const v1::TrialResult& a,
                                  const v1::TrialResult& b);

// Rounds below which an interval does not reach 95 % (see PairedRatio).
inline constexpr int kMinRounds = 6;

// Results of one interleaved confirmation. Those that are not ok have failed or
// were lost.
struct Confirmation {
  const v1::TrialResult* default_result = nullptr;
  const v1::TrialResult* incumbent = nullptr;  // null: there was none
  std::vector<const v1::TrialResult*> finalists;
  double noise_floor = 0;  // as a fraction; see UsableNoiseFloor
};

// The noise floor to judge with. One that was not measured is unknown, and so
// is one above the cap: it was measured while the board was busy with something
// else, and would keep every schedule from being published. An unknown one
// counts as kAssumedNoiseFloor.
inline constexpr double kAssumedNoiseFloor = 0.05;
inline constexpr double kLargestNoiseFloor = 0.20;
struct UsedNoiseFloor {
  double floor = kAssumedNoiseFloor;
  std::string note;  // why an unknown one was assumed; "": it is measured
};
UsedNoiseFloor UsableNoiseFloor(std::optional<double> measured);

struct ConfirmVerdict {
  const v1::TrialResult* winner = nullptr;
  double time_ns = 0;
  Interval time;  // 95 %
  double default_ns = 0;
  Ratio speedup;       // of the winner over the default
  std::string reason;  // when no finalist won: what was measured
};

// A finalist replaces the incumbent (where there is none: the default) only
// when the lower 95 % bound of its speed-up over that, and over the default, is
// above 1 + max(1 %, twice the noise floor). An incumbent that is slower than
// the default now yields to it. When the default stands, the speed-up is
// exactly 1; `reason` says how the best finalist compared. REQUIRES: the
// default's result is ok.
ConfirmVerdict Judge(const Confirmation& confirmation);

}  // namespace regatta

#endif  // REGATTA_SERVER_JOB_FINALS_H_
