#include "tracker/dispatch_queue.h"

#include <algorithm>
#include <cmath>
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
  bool forgot = shares.users.Join(entry.user, GrantOf(entry.user).weight, now);
  forgot |= shares.jobs[entry.user].Join(entry.job, entry.job_weight, now);
  shares.tasks[entry.job].Join(entry.task, entry.task_weight, now);
  if (entry.deadline_unix_ms > 0) {
    shares.deadlines[entry.job] = entry.deadline_unix_ms;
  }
  if (forgot) Sweep(shares);
}

void DispatchQueue::Sweep(Shares& shares) {
  std::erase_if(shares.jobs,
                [&](const auto& j) { return !shares.users.Knows(j.first); });
  const auto forgotten = [&](const JobKey& job) {
    return std::none_of(
        shares.jobs.begin(), shares.jobs.end(),
        [&](const auto& jobs) { return jobs.second.Knows(job); });
  };
  std::erase_if(shares.tasks,
                [&](const auto& t) { return forgotten(t.first); });
  std::erase_if(shares.cost,
                [&](const auto& c) { return forgotten(c.first.first); });
  std::erase_if(shares.deadlines,
                [&](const auto& d) { return forgotten(d.first); });
}

void DispatchQueue::Leave(const Entry& entry, SteadyTime now) {
  Shares& shares = SharesOf(entry);
  shares.users.Leave(entry.user, now);
  shares.jobs.at(entry.user).Leave(entry.job, now);
  shares.tasks.at(entry.job).Leave(entry.task, now);
}

void DispatchQueue::ChargeSeconds(const Entry& entry, double seconds) {
  Shares& shares = SharesOf(entry);
  shares.users.Charge(entry.user, seconds);
  shares.jobs[entry.user].Charge(entry.job, seconds);
  shares.tasks[entry.job].Charge(entry.task, seconds);
}

double DispatchQueue::CostOf(const Entry& entry) {
  const auto& costs = SharesOf(entry).cost;
  const auto found = costs.find({entry.job, entry.task});
  return found == costs.end() ? kFirstCost : found->second;
}

void DispatchQueue::Push(const Entry& entry, SteadyTime now) {
  Bands& bands = queues_[entry.key];
  if (!bands.contains(entry.priority)) SharesOf(entry).hungry_since = now;
  Units& units = bands[entry.priority][entry.user][entry.job][entry.task];
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
  auto user = band->second.find(entry.user);
  CHECK(user != band->second.end()) << entry.assignment_id;
  auto job = user->second.find(entry.job);
  CHECK(job != user->second.end()) << entry.assignment_id;
  auto task = job->second.find(entry.task);
  CHECK(task != job->second.end()) << entry.assignment_id;
  CHECK(task->second.erase(entry.sequence) == 1) << entry.assignment_id;
  if (task->second.empty()) job->second.erase(task);
  if (job->second.empty()) user->second.erase(job);
  if (user->second.empty()) band->second.erase(user);
  if (band->second.empty()) queue->second.erase(band);
  if (queue->second.empty()) queues_.erase(queue);
}

const DispatchQueue::Grant& DispatchQueue::GrantOf(
    const std::string& user) const {
  static const Grant* const none = new Grant;
  const auto found = grants_.find(user);
  return found == grants_.end() ? *none : found->second;
}

const DispatchQueue::Entry* DispatchQueue::FirstOfUser(
    const Jobs& jobs, const FairShare<JobKey>& share, const Shares& shares,
    const std::function<bool(const std::string&)>& place) const {
  std::vector<std::pair<int64_t, Jobs::const_iterator>> urgent;
  for (auto job = jobs.begin(); job != jobs.end(); ++job) {
    const auto deadline = shares.deadlines.find(job->first);
    if (deadline != shares.deadlines.end()) {
      urgent.emplace_back(deadline->second, job);
    }
  }
  std::sort(urgent.begin(), urgent.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second->first) <
           std::tie(b.first, b.second->first);
  });
  const auto first_of_job = [&](const Jobs::value_type& job) -> const Entry* {
    InOrder<std::map<int32_t, Units>, FairShare<int32_t>> tasks(
        job.second, shares.tasks.at(job.first));
    while (const auto* task = tasks.Next()) {
      for (const auto& [sequence, entry] : task->second) {
        if (place(entry.assignment_id)) return &entry;
      }
    }
    return nullptr;
  };
  for (const auto& [deadline, job] : urgent) {
    if (const Entry* taken = first_of_job(*job)) return taken;
  }
  InOrder<Jobs, FairShare<JobKey>> in_order(jobs, share);
  while (const auto* job = in_order.Next()) {
    if (shares.deadlines.contains(job->first)) continue;  // had its turn
    if (const Entry* taken = first_of_job(*job)) return taken;
  }
  return nullptr;
}

const DispatchQueue::Entry* DispatchQueue::FirstTaken(
    const Band& band, const Shares& shares,
    const std::function<bool(const std::string& user)>& may,
    const std::function<bool(const std::string&)>& place) const {
  InOrder<Band, FairShare<std::string>> users(band, shares.users);
  while (const auto* user = users.Next()) {
    if (!may(user->first)) continue;
    const Entry* taken =
        FirstOfUser(user->second, shares.jobs.at(user->first), shares, place);
    if (taken != nullptr) return taken;
  }
  return nullptr;
}

std::vector<int32_t> DispatchQueue::Order(const std::string& device_class,
                                          const Bands& bands,
                                          SteadyTime now) const {
  // Place, minus how long it has been hungry: among equals the hungriest.
  std::vector<std::tuple<int64_t, int64_t, int32_t>> order;
  int64_t place = 0;
  for (const auto& [priority, band] : bands) {
    const SteadyTime since = shares_.at({device_class, priority}).hungry_since;
    const int64_t rises = (now - since) / kAgeing;
    order.emplace_back(place++ - rises, since.ns, priority);
  }
  std::sort(order.begin(), order.end());
  std::vector<int32_t> priorities;
  for (const auto& [at, since, priority] : order) {
    priorities.push_back(priority);
  }
  return priorities;
}

bool DispatchQueue::PlaceNext(
    const MatchKey& key, int64_t credit, SteadyTime now,
    const std::function<bool(const std::string&)>& place) {
  auto queue = queues_.find(key);
  if (queue == queues_.end()) return false;
  const auto within = [&](const std::string& user) {
    const double percent = GrantOf(user).most_percent;
    if (percent >= 100) return true;
    const double most =
        std::ceil(static_cast<double>(credit) * percent / 100 - 1e-9);
    const auto held = held_.find({key.device_class, user});
    return held == held_.end() || held->second < std::max(1.0, most);
  };
  const auto anybody = [](const std::string&) { return true; };
  const std::vector<int32_t> order =
      Order(key.device_class, queue->second, now);
  // Bounds hold only as long as somebody else can use the device.
  for (const bool bounded : {true, false}) {
    for (const int32_t priority : order) {
      Shares& shares = shares_.at({key.device_class, priority});
      const Band& band = queue->second.at(priority);
      const Entry* taken = bounded ? FirstTaken(band, shares, within, place)
                                   : FirstTaken(band, shares, anybody, place);
      if (taken == nullptr) continue;
      const Entry entry = *taken;
      shares.hungry_since = now;
      Erase(entry);
      StartRunning(entry);
      return true;
    }
    if (grants_.empty()) break;  // nobody was left out
  }
  return false;
}

void DispatchQueue::StartRunning(const Entry& entry) {
  Shares& shares = SharesOf(entry);
  shares.users.Start(entry.user);
  shares.jobs.at(entry.user).Start(entry.job);
  ++held_[{entry.key.device_class, entry.user}];
  shares.tasks[entry.job].Start(entry.task);
  const double estimate = CostOf(entry) * std::max(1, entry.trials);
  ChargeSeconds(entry, estimate);
  CHECK(running_.try_emplace(entry.assignment_id, Running{entry, estimate})
            .second)
      << entry.assignment_id << " runs already";
}

void DispatchQueue::RunsAlready(const Entry& entry, SteadyTime now) {
  Join(entry, now);
  StartRunning(entry);
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
  const auto held =
      held_.find({running.entry.key.device_class, running.entry.user});
  if (--held->second == 0) held_.erase(held);
  ChargeSeconds(running.entry, -running.estimate);
  Leave(running.entry, now);
}

std::vector<DispatchQueue::Waiting> DispatchQueue::Summary() const {
  std::vector<Waiting> summary;
  for (const auto& [key, bands] : queues_) {
    for (const auto& [priority, band] : bands) {
      for (const auto& [user, jobs] : band) {
        for (const auto& [job, tasks] : jobs) {
          int64_t count = 0;
          for (const auto& [task, units] : tasks) {
            count += static_cast<int64_t>(units.size());
          }
          summary.push_back({key, job, count});
        }
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
