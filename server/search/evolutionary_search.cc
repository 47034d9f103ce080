#include "server/search/evolutionary_search.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "server/search/proposal_book.h"

namespace regatta {
namespace {

// Schedules that may become parents. Few, so that a budget of a hundred trials
// already climbs; more than a handful, so that several sketches stay alive.
constexpr size_t kElite = 16;
// Of a parent's rank: each next rank is this much less likely than the one
// before. Most parents are among the best three.
constexpr double kRankDecay = 0.6;
constexpr double kRandomShare = 0.1;
// While fewer were timed than this, every other proposal is random.
constexpr size_t kYoung = 8;
constexpr double kCrossShare = 0.4;
// A mutation goes on to another with this probability: mostly small steps, now
// and then a long one.
constexpr double kMutateAgain = 0.2;
constexpr int kMaxSteps = 8;

class EvolutionarySearch : public SearchStrategy {
 public:
  explicit EvolutionarySearch(SearchContext context)
      : space_(context.space), random_(context.seed), book_(context) {
    for (const Observation& known : context.known) Learn(known);
  }

  std::vector<Schedule> Ask(int count) override {
    std::vector<Schedule> schedules;
    while (static_cast<int>(schedules.size()) < count) {
      // The nearer neighbourhoods are used up as the tries go on.
      int tries = 0;
      auto next = book_.Next([&] { return Propose(tries++); });
      if (!next) break;
      schedules.push_back(*std::move(next));
    }
    return schedules;
  }

  void Tell(const Observation& observation) override {
    book_.MarkKnown(observation.schedule);
    Learn(observation);
  }

  void Withdraw(const Schedule& schedule) override { book_.Withdraw(schedule); }

 private:
  struct Parent {
    int64_t time_ns;
    bool abandoned;
    Schedule schedule;
    // The schedule itself breaks ties, so that the order of telling does not.
    friend auto operator<=>(const Parent&, const Parent&) = default;
  };

  void Learn(const Observation& observation) {
    if (!observation.ok || observation.time_ns <= 0) return;
    Parent parent{observation.time_ns, observation.abandoned,
                  observation.schedule};
    const auto same = [&](const Parent& other) {
      return other.schedule == parent.schedule;
    };
    if (std::any_of(elite_.begin(), elite_.end(), same)) return;
    elite_.insert(std::lower_bound(elite_.begin(), elite_.end(), parent),
                  parent);
    if (elite_.size() > kElite) elite_.pop_back();
  }

  const Schedule& PickParent() {
    size_t rank = 0;
    while (rank + 1 < elite_.size() && random_.Unit() < kRankDecay) ++rank;
    return elite_[rank].schedule;
  }

  std::optional<Schedule> Propose(int tries) {
    // After many repeats the elite's surroundings are exhausted: go further.
    const double random_share = elite_.size() < kYoung  ? 0.5
                                : tries > kMaxTries / 4 ? 0.5
                                                        : kRandomShare;
    if (elite_.empty() || random_.Unit() < random_share) {
      return space_->Sample(random_);
    }
    std::optional<Schedule> child = PickParent();
    const bool cross = elite_.size() > 1 && random_.Unit() < kCrossShare;
    if (cross) child = space_->Cross(*child, PickParent(), random_);
    int steps = cross ? 0 : 1 + tries / 64;
    while (steps < kMaxSteps && random_.Unit() < kMutateAgain) ++steps;
    for (int i = 0; i < steps && child; ++i) {
      std::optional<Schedule> moved = space_->Mutate(*child, random_);
      if (!moved) break;
      child = std::move(moved);
    }
    return child ? child : space_->Sample(random_);
  }

  std::shared_ptr<const Space> space_;
  Random random_;
  ProposalBook book_;
  std::vector<Parent> elite_;  // fastest first
};

}  // namespace

std::unique_ptr<SearchStrategy> CreateEvolutionarySearch(
    SearchContext context) {
  return std::make_unique<EvolutionarySearch>(std::move(context));
}

}  // namespace regatta
