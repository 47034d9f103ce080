// Steady-state evolution: seeds first, then mutations and crossings of the
// fastest schedules so far, with a share of random ones against getting stuck.
//
// Failed candidates teach only that they are not to be repeated; abandoned ones
// take part with their lower bound, which keeps them behind every full time.
#ifndef REGATTA_SERVER_SEARCH_EVOLUTIONARY_SEARCH_H_
#define REGATTA_SERVER_SEARCH_EVOLUTIONARY_SEARCH_H_

#include <memory>

#include "server/search/search_strategy.h"

namespace regatta {

std::unique_ptr<SearchStrategy> CreateEvolutionarySearch(SearchContext context);

}  // namespace regatta

#endif  // REGATTA_SERVER_SEARCH_EVOLUTIONARY_SEARCH_H_
