// How schedules to try are chosen: ask for candidates, tell what came of them.
//
// A strategy never waits for all answers before it proposes more (no generation
// barrier), and gives the same candidates for the same seed and the same
// sequence of asks and tells. One contract suite (tests/server) runs on every
// strategy of the list.
//
// To add one: two files here and one line in strategy_list.cc
// (docs/recipes.md).
//
// Not thread-safe: a job's runner owns its strategies.
#ifndef REGATTA_SERVER_SEARCH_SEARCH_STRATEGY_H_
#define REGATTA_SERVER_SEARCH_SEARCH_STRATEGY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "compiler/space/space.h"

namespace regatta {

// What a strategy learns of a candidate. Only candidate outcomes are told;
// trials that the infrastructure lost are withdrawn instead.
struct Observation {
  Schedule schedule;
  bool ok = false;        // verified and timed; false for any failed candidate
  int64_t time_ns = 0;    // of an ok one; a lower bound when abandoned
  bool abandoned = false;
};

class SearchStrategy {
 public:
  virtual ~SearchStrategy() = default;
  // Up to `count` legal schedules, none of them asked before by this strategy
  // nor among the known ones. Fewer (or none) when `kMaxTries` proposals in a
  // row were known already: the space may be exhausted.
  virtual std::vector<Schedule> Ask(int count) = 0;
  // What came of a schedule that was asked for (by this object or, of the
  // context's `pending`, by one before it). Told twice or unasked, it is learnt
  // from as a known one.
  virtual void Tell(const Observation& observation) = 0;
  // The schedule's trial was lost to the infrastructure; it may be asked again.
  virtual void Withdraw(const Schedule& schedule) = 0;

  static constexpr int kMaxTries = 2000;
};

// What a strategy starts from.
struct SearchContext {
  std::shared_ptr<const Space> space;
  uint64_t seed = 0;
  // Measured before, from the log: never asked again, and learnt from.
  std::vector<Observation> known;
  // Asked for in an earlier life of the job and still out: never asked again,
  // told or withdrawn later.
  std::vector<Schedule> pending;
  // Worth trying first, in order: heuristics' and neighbours' schedules.
  std::vector<Schedule> seeds;
};

struct StrategyInfo {
  std::string_view name;
  std::string_view help;  // one clause
  std::unique_ptr<SearchStrategy> (*create)(SearchContext context);
};

// THE list, in strategy_list.cc; the first is the default.
absl::Span<const StrategyInfo> SearchStrategies();
// Null for an unknown name.
const StrategyInfo* FindSearchStrategy(std::string_view name);

}  // namespace regatta

#endif  // REGATTA_SERVER_SEARCH_SEARCH_STRATEGY_H_
