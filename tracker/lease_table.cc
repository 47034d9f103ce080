#include "tracker/lease_table.h"

#include <utility>

#include "base/check.h"

namespace regatta {

Lease& LeaseTable::Add(Lease lease) {
  by_agent_[lease.agent_id].insert(lease.assignment_id);
  queue_.Set(lease.assignment_id, lease.deadline);
  const std::string id = lease.assignment_id;
  auto [it, inserted] = leases_.try_emplace(id, std::move(lease));
  CHECK(inserted) << "assignment " << it->first << " is leased already";
  return it->second;
}

Lease* LeaseTable::Find(std::string_view assignment_id) {
  auto it = leases_.find(assignment_id);
  return it == leases_.end() ? nullptr : &it->second;
}

void LeaseTable::Remove(std::string_view assignment_id) {
  auto it = leases_.find(assignment_id);
  CHECK(it != leases_.end()) << "assignment " << assignment_id;
  auto agent = by_agent_.find(it->second.agent_id);
  agent->second.erase(it->first);
  if (agent->second.empty()) by_agent_.erase(agent);
  queue_.Erase(it->first);
  leases_.erase(it);
}

void LeaseTable::Until(Lease& lease, SteadyTime deadline) {
  lease.deadline = deadline;
  queue_.SetNoLater(lease.assignment_id, deadline);
}

std::vector<std::string> LeaseTable::OfAgent(std::string_view agent_id) const {
  auto agent = by_agent_.find(agent_id);
  if (agent == by_agent_.end()) return {};
  return {agent->second.begin(), agent->second.end()};
}

int LeaseTable::Load(std::string_view agent_id,
                     std::string_view device_id) const {
  auto agent = by_agent_.find(agent_id);
  if (agent == by_agent_.end()) return 0;
  int load = 0;
  for (const std::string& id : agent->second) {
    const std::string& device = leases_.find(id)->second.device_id;
    if (device.empty() || device == device_id) ++load;
  }
  return load;
}

std::vector<std::string> LeaseTable::TakeExpired(SteadyTime now) {
  std::vector<std::string> expired;
  for (std::string& id : queue_.TakeDue(now)) {
    const SteadyTime deadline = leases_.find(id)->second.deadline;
    if (deadline <= now) {
      expired.push_back(std::move(id));
    } else {
      queue_.Set(id, deadline);
    }
  }
  return expired;
}

void LeaseTable::CheckIndices() const {
  for (const auto& [id, lease] : leases_) {
    const auto queued = queue_.Find(id);
    CHECK(queued && *queued <= lease.deadline) << id;
    const auto agent = by_agent_.find(lease.agent_id);
    CHECK(agent != by_agent_.end() && agent->second.contains(id)) << id;
  }
}

void LeaseTable::ExtendAll(absl::Duration stall, SteadyTime excused_until) {
  for (auto& [id, lease] : leases_) {
    lease.deadline = lease.deadline + stall;
    lease.excused_until = excused_until;
  }
}

}  // namespace regatta
