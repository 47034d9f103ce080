#include "server/search/proposal_book.h"

#include <algorithm>

namespace regatta {

ProposalBook::ProposalBook(const SearchContext& context)
    : space_(context.space) {
  for (const Observation& known : context.known) used_.insert(known.schedule);
  for (const Schedule& pending : context.pending) used_.insert(pending);
  for (const Schedule& seed : context.seeds) {
    if (!space_->Refusal(seed)) seeds_.push_back(seed);
  }
}

std::optional<Schedule> ProposalBook::Next(
    const std::function<std::optional<Schedule>()>& generate) {
  if (!withdrawn_.empty()) {
    Schedule schedule = std::move(withdrawn_.front());
    withdrawn_.pop_front();
    return schedule;
  }
  while (!seeds_.empty()) {
    Schedule schedule = std::move(seeds_.front());
    seeds_.pop_front();
    if (Take(schedule)) return schedule;
  }
  if (walked_out_) return std::nullopt;
  for (int tries = 0; tries < SearchStrategy::kMaxTries; ++tries) {
    std::optional<Schedule> schedule = generate();
    // The space's own attempts found no legal schedule: the walk decides.
    if (!schedule) break;
    if (Take(*schedule)) return schedule;
  }
  return Walk();
}

void ProposalBook::MarkKnown(const Schedule& schedule) {
  used_.insert(schedule);
  std::erase(withdrawn_, schedule);
}

void ProposalBook::Withdraw(const Schedule& schedule) {
  if (std::find(withdrawn_.begin(), withdrawn_.end(), schedule) ==
      withdrawn_.end()) {
    withdrawn_.push_back(schedule);
  }
}

std::optional<Schedule> ProposalBook::Walk() {
  if (space_->Size() > kWalkable) return std::nullopt;
  std::optional<Schedule> found;
  space_->ForEach([&](const Schedule& schedule) {
    if (!Take(schedule)) return true;
    found = schedule;
    return false;
  });
  walked_out_ = !found.has_value();
  return found;
}

}  // namespace regatta
