// TrackerCore: what time alone makes of agents and their devices. None is
// looked at before something may be due.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/log.h"
#include "tracker/tracker_core.h"

namespace regatta {

// A process that was stopped or starved must not blame others for its own
// silence.
void TrackerCore::AbsorbStall(SteadyTime now) {
  const absl::Duration stall = now - last_tick_ - options_.tick;
  last_tick_ = now;
  if (stall < options_.stall) return;
  LOG(kWarning) << "this process stood still for "
                << absl::FormatDuration(stall)
                << "; all deadlines are moved by that";
  leases_.ExtendAll(stall, now + options_.lease);
  for (auto& [id, agent] : registry_.agents()) {
    if (agent.presence != v1::PRESENCE_LOST) {
      agent.last_seen = std::min(now, agent.last_seen + stall);
    }
    agent.loop.ExtendBy(stall);
    if (agent.returns_by) *agent.returns_by = *agent.returns_by + stall;
    if (agent.reboot_until) *agent.reboot_until = *agent.reboot_until + stall;
  }
  power_.ExtendBy(stall);
  brake_.ExtendBy(stall);
  for (auto& [epoch, revoked] : revoked_) revoked.at = revoked.at + stall;
  relay_.ExtendBy(stall);
  for (auto& [id, until] : cancelling_) until = until + stall;
  for (auto& [session, unnamed] : unnamed_sessions_) {
    unnamed.since = std::min(now, unnamed.since + stall);
  }
  standings_.ExtendAll(stall);
  for (auto& [id, run] : canary_runs_) run.deadline = run.deadline + stall;
}

void TrackerCore::LookSoon(const Agent& agent) {
  looks_.SetNoLater(agent.id, clock_.Steady());
}

v1::Presence TrackerCore::PresenceNow(const Agent& agent,
                                      SteadyTime now) const {
  return PresenceOf({agent.session.has_value(), agent.last_seen, agent.quiet,
                     agent.returns_by ? agent.returns_by : agent.reboot_until},
                    now, options_);
}

void TrackerCore::Watch(const Agent& agent) {
  const SteadyTime now = clock_.Steady();
  if (PresenceNow(agent, now) != agent.presence) return LookSoon(agent);
  if (const auto at = NextLook(agent, now)) looks_.SetNoLater(agent.id, *at);
}

std::optional<SteadyTime> TrackerCore::NextLook(const Agent& agent,
                                                SteadyTime now) const {
  std::optional<SteadyTime> next;
  const auto consider = [&](std::optional<SteadyTime> at) {
    if (at && *at > now && (!next || *at < *next)) next = at;
  };
  consider(agent.returns_by);
  consider(agent.reboot_until);
  const SteadyTime heard = agent.last_seen + agent.quiet;
  consider(heard);  // it may take more work than one
  if (agent.session) consider(heard + options_.suspect);
  consider(heard + options_.lost);
  const bool holds = leases_.Holds(agent.id);
  consider(agent.loop.JudgeAt(holds, options_.stuck));
  if (agent.holds_stored && !holds && !agent.unreported) {
    consider(agent.last_leased + options_.lease);
  }
  if (!agent.session) {
    consider(agent.last_seen + options_.forget_agent + absl::Nanoseconds(1));
  }
  for (const std::string& id : agent.device_ids) {
    const Device& device = registry_.devices().find(id)->second;
    consider(device.not_before);
    consider(device.canary_after);
    consider(device.canary_due);
  }
  return next;
}

void TrackerCore::LookAtDue(SteadyTime now) {
  for (const std::string& id : looks_.TakeDue(now)) {
    Agent* agent = registry_.FindAgent(id);
    if (agent == nullptr) continue;
    LookAt(*agent, now);
    if (IsForgotten(*agent, now)) {
      Forget(*agent);
    } else {
      Watch(*agent);
    }
  }
}

void TrackerCore::LookAt(Agent& agent, SteadyTime now) {
  // It said that it would go, and did not; nor did its power.
  if (agent.session && agent.returns_by && now >= *agent.returns_by) {
    agent.returns_by.reset();
  }
  if (agent.session && agent.reboot_until && now >= *agent.reboot_until &&
      !AnySwitched(agent)) {
    agent.reboot_until.reset();
  }
  const v1::Presence presence = PresenceNow(agent, now);
  if (presence != agent.presence) {
    waits_changed_ = true;
    if (presence == v1::PRESENCE_LOST) {
      LoseAgent(agent);
    } else {
      SetPresence(agent, presence);
    }
  }
  const bool holds = leases_.Holds(agent.id);
  const bool was_stuck = agent.loop.stuck();
  agent.loop.Judge(holds, now, options_.stuck);
  if (agent.loop.stuck() && !was_stuck) {
    for (const std::string& device_id : agent.device_ids) {
      Unprove(device_id, "its work loop stood still");
    }
  }
  OweCanaries(agent, now);
  // Also ends cool-downs and notices a stuck loop.
  Reindex(agent);
  if (agent.holds_stored && !holds && !agent.unreported &&
      now - agent.last_leased >= options_.lease) {
    agent.holds_stored = false;
    dirty_agents_.insert(agent.id);
  }
}

void TrackerCore::OweCanaries(Agent& agent, SteadyTime now) {
  for (const std::string& id : agent.device_ids) {
    const Device& device = *registry_.FindDevice(id);
    const v1::DeviceStanding& standing = *standings_.Find(id);
    if (standing.trust() != v1::TRUST_HEALTHY || standing.canaries_owed() > 0 ||
        !HasCanary(device) ||
        (now < device.canary_due &&
         device.trials_since_canary < options_.canary_trials)) {
      continue;
    }
    v1::DeviceStanding due = standing;
    due.set_canaries_owed(1);
    standings_.Set(std::move(due), device.info.device_class(), "", "");
  }
}

bool TrackerCore::IsForgotten(const Agent& agent, SteadyTime now) const {
  return agent.presence == v1::PRESENCE_LOST && !agent.session &&
         now - agent.last_seen > options_.forget_agent &&
         !leases_.Holds(agent.id);
}

void TrackerCore::Forget(const Agent& agent) {
  const std::string id = agent.id;
  LOG(kInfo) << "agent " << id << " has not been seen for "
             << absl::FormatDuration(options_.forget_agent)
             << " and is forgotten";
  // One that the store fails to forget goes with the next start.
  if (absl::Status status = store_.Forget(id); !status.ok()) {
    LOG(kWarning) << status.message();
  }
  for (const std::string& device : agent.device_ids) faults_.Place(device, "");
  ForgetDevicesOf(id);
  dirty_agents_.erase(id);
  looks_.Erase(id);
  registry_.Remove(id);
  waits_changed_ = true;
}

void TrackerCore::SetPresence(Agent& agent, v1::Presence presence) {
  if (agent.presence == presence) return;
  agent.presence = presence;
  Touch(agent);
}

void TrackerCore::CheckLook(const Agent& agent, SteadyTime now) const {
  const auto at = looks_.Find(agent.id);
  if (at && *at <= now) return;  // with the next tick
  const auto next = NextLook(agent, now);
  CHECK(!next || (at && *at <= *next)) << agent.id << " is looked at too late";
  CHECK(PresenceNow(agent, now) == agent.presence) << agent.id;
  for (const std::string& id : agent.device_ids) {
    const Device& device = registry_.devices().find(id)->second;
    const v1::DeviceStanding& standing = *standings_.Find(id);
    const int load = leases_.Load(agent.id, id);
    const NotFree why = WhyNotFree(agent, device, load, now);
    CHECK(device.free.has_value() == (why == NotFree::kFree)) << id;
    CHECK(device.serving == TakesMoreSoon(why)) << id;
    CHECK(!Available(agent) || IsDraining(device.info.health()) ||
          !WantsCanary(agent, device, load, now))
        << id << " wants a canary, and none was begun";
    CHECK(standing.trust() != v1::TRUST_HEALTHY ||
          standing.canaries_owed() > 0 || !HasCanary(device) ||
          (now < device.canary_due &&
           device.trials_since_canary < options_.canary_trials))
        << id << " is due for a canary";
  }
}

void TrackerCore::CheckIndices() const {
  registry_.CheckIndices();
  standings_.CheckIndices();
  leases_.CheckIndices();
  faults_.CheckSums();
  const SteadyTime now = clock_.Steady();
  for (const auto& [id, agent] : registry_.agents()) CheckLook(agent, now);
  for (const auto& [id, lease] : leases_.all()) {
    const bool orphan = !works_.contains(id) &&
                        !id.starts_with(absl::StrCat(kCanaryServer, "/"));
    CHECK(orphan == orphans_.contains(id)) << id;
  }
  for (const std::string& id : orphans_)
    CHECK(leases_.all().contains(id)) << id;
}

}  // namespace regatta
