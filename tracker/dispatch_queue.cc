#include "tracker/dispatch_queue.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace regatta {
namespace {

// Of a task's first trial, and the least that a trial is charged: one without
// any phase is not free.
constexpr double kFirstCost = 0.1;
constexpr double kLeastCost = 0.001;
// Weight of the latest trial in the mean.
constexpr double kLatest = 0.25;

// The keys of `entries`, least place first, one at a time: usually the first is
// enough.
template <typename Map, typename Share>
class InOrder {
 public:
  using Item = std::pair<typename Share::Place, typename Map::const_iterator>;

  InOrder(const Map& entries, const Share& share) {
    for (auto it = entries.begin(); it != entries.end(); ++it) {
      items_.emplace_back(share.PlaceOf(it->first), it);
    }
    std::make_heap(items_.begin(), items_.end(), After);
  }
  // Null: no more.
  const typename Map::value_type* Next() {
    if (items_.empty()) return nullptr;
    std::pop_heap(items_.begin(), items_.end(), After);
    const auto it = items_.back().second;
    items_.pop_back();
    return &*it;
  }

 private:
  static bool After(const Item& a, const Item& b) {
    return std::tie(a.first, a.second->first) >
           std::tie(b.first, b.second->first);
  }
  std::vector<Item> items_;
};

}  // namespace

DispatchQueue::Shares& DispatchQueue::SharesOf(const Entry& entry) {
  return shares_[{entry.key.device_class, entry.priority}];
}

void DispatchQueue::Join(const Entry& entry, SteadyTime now) {
  Shares& shares = SharesOf(entry);
  shares.jobs.Join(entry.job, entry.job_weight, now);
  shares.tasks[entry.job].Join(entry.task, entry.task_weight, now);
  // What belonged to jobs that are forgotten.
  std::erase_if(shares.tasks,
                [&](const auto& t) { return !shares.jobs.Knows(t.first); });
  std::erase_if(shares.cost, [&](const auto& c) {
    return !shares.jobs.Knows(c.first.first);
  });
}

void DispatchQueue::Leave(const Entry& entry, SteadyTime now) {
  Shares& shares = SharesOf(entry);
  shares.jobs.Leave(entry.job, now);
  shares.tasks.at(entry.job).Leave(entry.task, now);
}

void DispatchQueue::ChargeSeconds(const Entry& entry, double seconds) {
  Shares& shares = SharesOf(entry);
  shares.jobs.Charge(entry.job, seconds);
  shares.tasks[entry.job].Charge(entry.task, seconds);
}

double DispatchQueue::CostOf(const Entry& entry) {
  const auto& costs = SharesOf(entry).cost;
  const auto found = costs.find({entry.job, entry.task});
  return found == costs.end() ? kFirstCost : found->second;
}

void DispatchQueue::Push(const Entry& entry, SteadyTime now) {
  Units& units = queues_[entry.key][entry.priority][entry.job][entry.task];
  CHECK(units.emplace(entry.sequence, entry).second)
      << "sequence " << entry.sequence << " is queued already";
  Join(entry, now);
}

void DispatchQueue::Remove(const Entry& entry, SteadyTime now) {
  Erase(entry);
  Leave(entry, now);
}

void DispatchQueue::Erase(const Entry& entry) {
  auto queue = queues_.find(entry.key);
  CHECK(queue != queues_.end()) << entry.assignment_id;
  auto band = queue->second.find(entry.priority);
  CHECK(band != queue->second.end()) << entry.assignment_id;
  auto job = band->second.find(entry.job);
  CHECK(job != band->second.end()) << entry.assignment_id;
  auto task = job->second.find(entry.task);
  CHECK(task != job->second.end()) << entry.assignment_id;
  CHECK(task->second.erase(entry.sequence) == 1) << entry.assignment_id;
  if (task->second.empty()) job->second.erase(task);
  if (job->second.empty()) band->second.erase(job);
  if (band->second.empty()) queue->second.erase(band);
  if (queue->second.empty()) queues_.erase(queue);
}

const DispatchQueue::Entry* DispatchQueue::FirstTaken(
    const Band& band, const Shares& shares,
    const std::function<bool(const std::string&)>& place) const {
  InOrder<Band, FairShare<JobKey>> jobs(band, shares.jobs);
  while (const auto* job = jobs.Next()) {
    InOrder<std::map<int32_t, Units>, FairShare<int32_t>> tasks(
        job->second, shares.tasks.at(job->first));
    while (const auto* task = tasks.Next()) {
      for (const auto& [sequence, entry] : task->second) {
        if (place(entry.assignment_id)) return &entry;
      }
    }
  }
  return nullptr;
}

bool DispatchQueue::PlaceNext(
    const MatchKey& key, const std::function<bool(const std::string&)>& place) {
  auto queue = queues_.find(key);
  if (queue == queues_.end()) return false;
  for (const auto& [priority, band] : queue->second) {
    const Entry* taken =
        FirstTaken(band, shares_.at({key.device_class, priority}), place);
    if (taken == nullptr) continue;
    const Entry entry = *taken;
    Erase(entry);
    StartRunning(entry);
    return true;
  }
  return false;
}

void DispatchQueue::StartRunning(const Entry& entry) {
  Shares& shares = SharesOf(entry);
  shares.jobs.Start(entry.job);
  shares.tasks[entry.job].Start(entry.task);
  const double estimate = CostOf(entry) * std::max(1, entry.trials);
  ChargeSeconds(entry, estimate);
  CHECK(running_.emplace(entry.assignment_id, Running{entry, estimate}).second)
      << entry.assignment_id << " runs already";
}

void DispatchQueue::Charge(std::string_view assignment_id,
                           absl::Duration used) {
  const auto found = running_.find(assignment_id);
  if (found == running_.end()) return;
  Running& running = found->second;
  const Entry& entry = running.entry;
  const double seconds = std::max(kLeastCost, absl::ToDoubleSeconds(used));
  const double back = std::min(running.estimate, CostOf(entry));
  running.estimate -= back;
  ChargeSeconds(entry, seconds - back);
  auto [cost, fresh] =
      SharesOf(entry).cost.try_emplace({entry.job, entry.task}, seconds);
  if (!fresh) cost->second += kLatest * (seconds - cost->second);
}

void DispatchQueue::Ended(std::string_view assignment_id, SteadyTime now) {
  const auto found = running_.find(assignment_id);
  if (found == running_.end()) return;
  const Running running = found->second;
  running_.erase(found);
  ChargeSeconds(running.entry, -running.estimate);
  Leave(running.entry, now);
}

std::vector<DispatchQueue::Waiting> DispatchQueue::Summary() const {
  std::vector<Waiting> summary;
  for (const auto& [key, bands] : queues_) {
    for (const auto& [priority, band] : bands) {
      for (const auto& [job, tasks] : band) {
        int64_t count = 0;
        for (const auto& [task, units] : tasks) {
          count += static_cast<int64_t>(units.size());
        }
        summary.push_back({key, job, count});
      }
    }
  }
  return summary;
}

std::vector<MatchKey> DispatchQueue::Keys() const {
  std::vector<MatchKey> keys;
  for (const auto& [key, bands] : queues_) keys.push_back(key);
  return keys;
}

}  // namespace regatta
