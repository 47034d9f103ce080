// What a strategy has proposed and may still propose: the part that every
// strategy needs so that it never repeats itself, takes withdrawn schedules up
// again and notices the end of a small space.
//
// Not thread-safe.
#ifndef REGATTA_SERVER_SEARCH_PROPOSAL_BOOK_H_
#define REGATTA_SERVER_SEARCH_PROPOSAL_BOOK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "server/search/search_strategy.h"

namespace regatta {

class ProposalBook {
 public:
  // Knows the context's `known` and `pending`; its legal seeds come first.
  explicit ProposalBook(const SearchContext& context);

  // The next schedule, marked as asked: one that was withdrawn, else the next
  // seed, else what `generate` proposes. After kMaxTries proposals in a row
  // that were known already, walks a space of at most kWalkable combinations
  // for one that was never asked. Absent: none found.
  std::optional<Schedule> Next(
      const std::function<std::optional<Schedule>()>& generate);

  // A schedule is never proposed again.
  void MarkKnown(const Schedule& schedule);
  // A schedule is proposed before any new one.
  void Withdraw(const Schedule& schedule);

  static constexpr double kWalkable = 1 << 20;

 private:
  bool Take(const Schedule& schedule) { return used_.insert(schedule).second; }
  std::optional<Schedule> Walk();

  std::shared_ptr<const Space> space_;
  std::set<Schedule> used_;
  std::deque<Schedule> withdrawn_;
  std::deque<Schedule> seeds_;
  bool walked_out_ = false;  // a walk found nothing new
};

}  // namespace regatta

#endif  // REGATTA_SERVER_SEARCH_PROPOSAL_BOOK_H_
