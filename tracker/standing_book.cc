#include "tracker/standing_book.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "tracker/operator_state.h"

namespace regatta {
namespace {

// Of events that the store does not take: a full disk must not fill the memory.
constexpr size_t kMaxUnwritten = 1'000;

void LogState(const std::string& device_id, const std::string& device_class,
              const std::string& what, const std::string& reason,
              const std::string& by) {
  LOG(kInfo) << LogEvent("device_state") << LogField{"state", what}
             << LogDevice(device_id) << LogReason(reason) << LogField{"by", by}
             << (device_id.empty() ? "class " + device_class
                                   : "device " + device_id)
             << ": " << what << (reason.empty() ? "" : ": ") << reason;
}

}  // namespace

StandingBook::StandingBook(const Clock& clock, FleetStore& store)
    : clock_(clock), store_(store) {
  for (v1::DeviceStanding& standing : store_.Devices()) {
    Take(std::move(standing));
  }
}

const v1::DeviceStanding* StandingBook::Find(std::string_view device_id) const {
  const auto found = standings_.find(device_id);
  return found == standings_.end() ? nullptr : &found->second;
}

void StandingBook::Take(v1::DeviceStanding standing) {
  const std::string id = standing.device_id();
  const int64_t until = standing.operator_standing().until_unix_ms();
  if (until == 0) {
    deadlines_.erase(id);
  } else {
    const auto known = standings_.find(id);
    // The wall clock may have been set meanwhile; a deadline that stands
    // already does not move with it.
    if (known == standings_.end() ||
        known->second.operator_standing().until_unix_ms() != until) {
      deadlines_[id] = clock_.Steady() + absl::Milliseconds(until - WallMs());
    }
  }
  if (standing.operator_state() == v1::OPERATOR_STATE_DRAINING) {
    draining_.insert(id);
  } else {
    draining_.erase(id);
  }
  touched_.insert(id);
  standings_[id] = std::move(standing);
}

void StandingBook::CheckIndices() const {
  std::set<std::string> draining;
  for (const auto& [id, standing] : standings_) {
    if (standing.operator_state() == v1::OPERATOR_STATE_DRAINING) {
      draining.insert(id);
    }
  }
  CHECK(draining == draining_) << draining.size() << " are draining, "
                               << draining_.size() << " are noted";
}

void StandingBook::Set(v1::DeviceStanding standing,
                       const std::string& device_class, const std::string& what,
                       const std::string& reason) {
  const std::string id = standing.device_id();
  dirty_.insert(id);
  Take(std::move(standing));
  if (!what.empty()) Note(id, device_class, what, reason);
}

void StandingBook::Note(const std::string& device_id,
                        const std::string& device_class,
                        const std::string& what, const std::string& reason) {
  LogState(device_id, device_class, what, Brief(reason), kByTracker);
  if (unwritten_.size() >= kMaxUnwritten) return;
  v1::DeviceEvent& event = unwritten_.emplace_back();
  event.set_unix_ms(WallMs());
  event.set_device_id(device_id);
  event.set_device_class(device_class);
  event.set_what(what);
  event.set_reason(Brief(reason));
  event.set_by(kByTracker);
  AddNews(event);
}

void StandingBook::AddNews(const v1::DeviceEvent& event) {
  if (news_.size() < kMaxUnwritten) news_.push_back(event);
}

absl::Status StandingBook::Commit(std::vector<v1::DeviceStanding> standings,
                                  std::vector<v1::DeviceEvent> events) {
  RETURN_IF_ERROR(Flush());
  RETURN_IF_ERROR(store_.PutDevices(standings, events));
  for (v1::DeviceStanding& standing : standings) Take(std::move(standing));
  for (const v1::DeviceEvent& event : events) {
    LogState(event.device_id(), event.device_class(), event.what(),
             event.reason(), event.by());
    AddNews(event);
  }
  return absl::OkStatus();
}

absl::Status StandingBook::Flush() {
  if (dirty_.empty() && unwritten_.empty()) return absl::OkStatus();
  std::vector<v1::DeviceStanding> changed;
  for (const std::string& id : dirty_) changed.push_back(standings_.find(id)->second);
  RETURN_IF_ERROR(store_.PutDevices(changed, unwritten_));
  dirty_.clear();
  unwritten_.clear();
  return absl::OkStatus();
}

void StandingBook::Forget(const std::string& device_id) {
  draining_.erase(device_id);
  touched_.insert(device_id);
  standings_.erase(device_id);
  deadlines_.erase(device_id);
  dirty_.erase(device_id);
  // One that the store fails to forget goes with the next start.
  if (absl::Status status = store_.ForgetDevice(device_id); !status.ok()) {
    LOG(kWarning) << status.message();
  }
}

std::vector<std::string> StandingBook::Due() const {
  std::vector<std::string> due;
  const SteadyTime now = clock_.Steady();
  for (const auto& [id, deadline] : deadlines_) {
    if (now >= deadline) due.push_back(id);
  }
  return due;
}

void StandingBook::ExtendAll(absl::Duration stall) {
  for (auto& [id, deadline] : deadlines_) deadline = deadline + stall;
}

std::vector<v1::DeviceEvent> StandingBook::Events(
    const std::function<bool(const v1::DeviceEvent&)>& wanted,
    size_t limit) const {
  std::vector<v1::DeviceEvent> found;
  const auto gather = [&](const auto& events) {
    for (auto e = events.rbegin(); e != events.rend() && found.size() < limit;
         ++e) {
      if (wanted(*e)) found.push_back(*e);
    }
  };
  gather(unwritten_);
  gather(store_.Events());
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace regatta
