// Uniformly random legal schedules after the seeds: the baseline of every
// comparison.
#ifndef REGATTA_SERVER_SEARCH_RANDOM_SEARCH_H_
#define REGATTA_SERVER_SEARCH_RANDOM_SEARCH_H_

#include <memory>

#include "server/search/search_strategy.h"

namespace regatta {

std::unique_ptr<SearchStrategy> CreateRandomSearch(SearchContext context);

}  // namespace regatta

#endif  // REGATTA_SERVER_SEARCH_RANDOM_SEARCH_H_
