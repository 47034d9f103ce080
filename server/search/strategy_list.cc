// THE list of search strategies; the first is the default. The contract suite
// in tests/server runs on each.
#include "server/search/evolutionary_search.h"
#include "server/search/random_search.h"
#include "server/search/search_strategy.h"

namespace regatta {

absl::Span<const StrategyInfo> SearchStrategies() {
  static constexpr StrategyInfo kStrategies[] = {
      {"evolutionary", "mutates and crosses the fastest schedules so far",
       &CreateEvolutionarySearch},
      {"random", "uniformly random legal schedules, the baseline",
       &CreateRandomSearch},
  };
  return kStrategies;
}

const StrategyInfo* FindSearchStrategy(std::string_view name) {
  for (const StrategyInfo& info : SearchStrategies()) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

}  // namespace regatta
