#include "server/search/random_search.h"

#include <utility>

#include "base/random.h"
#include "server/search/proposal_book.h"

namespace regatta {
namespace {

class RandomSearch : public SearchStrategy {
 public:
  explicit RandomSearch(SearchContext context)
      : space_(context.space), random_(context.seed), book_(context) {}

  std::vector<Schedule> Ask(int count) override {
    std::vector<Schedule> schedules;
    while (static_cast<int>(schedules.size()) < count) {
      auto next = book_.Next([this] { return space_->Sample(random_); });
      if (!next) break;
      schedules.push_back(*std::move(next));
    }
    return schedules;
  }

  void Tell(const Observation& observation) override {
    book_.MarkKnown(observation.schedule);
  }
  void Withdraw(const Schedule& schedule) override { book_.Withdraw(schedule); }

 private:
  std::shared_ptr<const Space> space_;
  Random random_;
  ProposalBook book_;
};

}  // namespace

std::unique_ptr<SearchStrategy> CreateRandomSearch(SearchContext context) {
  return std::make_unique<RandomSearch>(std::move(context));
}

}  // namespace regatta
