// TrackerCore's distrust of agents: an agent with a certificate speaks for
// itself, its devices and the assignments that it was given.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/secret.h"
#include "tracker/lease_proof.h"
#include "tracker/operator_state.h"
#include "tracker/tracker_core.h"

namespace regatta {
namespace {

// Of an agent's processes, those that were replaced.
constexpr size_t kPastInstances = 8;
constexpr absl::Duration kTakeoverWindow = absl::Minutes(10);

}  // namespace

// Of the sessions without a Hello, how many have the certificate of this one's
// agent; 0 where it has none.
int64_t TrackerCore::CrowdOf(SessionId session) const {
  const auto own = callers_.find(session);
  if (own == callers_.end()) return 0;
  return std::count_if(unnamed_sessions_.begin(), unnamed_sessions_.end(),
                       [&](const auto& unnamed) {
                         const auto caller = callers_.find(unnamed.first);
                         return caller != callers_.end() &&
                                caller->second == own->second;
                       });
}

bool TrackerCore::RoomForSession(SessionId session) {
  const char* full = nullptr;
  if (unnamed_sessions_.size() >
      static_cast<size_t>(options_.max_unnamed_sessions)) {
    full = "sessions that have not said Hello";
  } else if (unnamed_sessions_.size() + sessions_.size() >
             static_cast<size_t>(options_.max_sessions)) {
    full = "sessions";
  } else if (CrowdOf(session) > options_.max_unnamed_sessions_per_agent) {
    full = "sessions of one agent that have not said Hello";
  }
  if (full == nullptr) return true;
  NoteRefusal(session, "Session", absl::StrCat("too many ", full));
  Close(session, absl::ResourceExhaustedError(absl::StrCat(
                     "this tracker has too many ", full, "; try again later")));
  return false;
}

absl::Status TrackerCore::CheckCaller(SessionId session,
                                      const v1::Hello& hello) {
  const auto caller = callers_.find(session);
  if (caller == callers_.end()) return absl::OkStatus();
  const Identity& identity = caller->second;
  if (identity.name != hello.agent_id()) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the certificate is of agent ", identity.name, ", the Hello of agent ",
        hello.agent_id(), "; start the agent with --id ", identity.name));
  }
  if (const auto barred = barred_.find(identity.name);
      barred != barred_.end()) {
    const absl::Duration left = barred->second - clock_.Steady();
    if (left > absl::ZeroDuration()) {
      return absl::PermissionDeniedError(absl::StrCat(
          "agent ", identity.name,
          " misbehaved (the audit says how) and is not let in for another ",
          absl::FormatDuration(absl::Ceil(left, absl::Seconds(1)))));
    }
    barred_.erase(barred);
  }
  return CheckOwnDevices(session, hello.devices());
}

absl::Status TrackerCore::CheckOwnDevices(
    SessionId session,
    const google::protobuf::RepeatedPtrField<v1::DeviceInfo>& devices) const {
  const auto caller = callers_.find(session);
  if (caller == callers_.end()) return absl::OkStatus();
  const Identity& identity = caller->second;
  for (const v1::DeviceInfo& info : devices) {
    if (info.device_id() != identity.name &&
        !info.device_id().starts_with(identity.name + "-")) {
      return absl::PermissionDeniedError(
          absl::StrCat("device ", info.device_id(), " is not agent ",
                       identity.name, "'s by name: its devices are called ",
                       identity.name, " or ", identity.name, "-SOMETHING"));
    }
    if (!identity.device_class.empty() &&
        info.device_class() != identity.device_class) {
      return absl::PermissionDeniedError(absl::StrCat(
          "device ", info.device_id(), " is of class ", info.device_class(),
          "; the certificate of agent ", identity.name, " is for class ",
          identity.device_class, " only"));
    }
  }
  return absl::OkStatus();
}

bool TrackerCore::Holds(const Agent& agent, std::string_view assignment_id,
                        int64_t lease_epoch, std::string_view proof) const {
  if (!agent.session || !callers_.contains(*agent.session)) return true;
  return SameSecret(proof, LeaseProof(store_.lease_secret(), agent.id,
                                      assignment_id, lease_epoch));
}

void TrackerCore::SpokeForOthers(Agent& agent) {
  const SteadyTime now = clock_.Steady();
  std::deque<SteadyTime>& times = agent.spoke_for_others;
  times.push_back(now);
  while (now - times.front() > absl::Minutes(1)) times.pop_front();
  if (static_cast<int>(times.size()) < options_.max_not_owner_per_minute) {
    return;
  }
  const std::string why =
      absl::StrCat(times.size(),
                   " results for trials that it does not hold within a minute");
  times.clear();
  Bar(*agent.session, agent.id, "ResultBatch", why);
}

bool TrackerCore::TakeTurns(Agent& agent, const std::string& instance_id) {
  std::deque<std::string>& past = agent.past_instances;
  const bool back =
      std::find(past.begin(), past.end(), instance_id) != past.end();
  if (!agent.instance_id.empty()) past.push_back(agent.instance_id);
  if (past.size() > kPastInstances) past.pop_front();
  agent.instance_id = instance_id;
  if (!back) return false;
  const SteadyTime now = clock_.Steady();
  std::deque<SteadyTime>& times = agent.takeovers;
  times.push_back(now);
  while (now - times.front() > kTakeoverWindow) times.pop_front();
  if (static_cast<int>(times.size()) <= options_.max_takeovers) return false;
  times.clear();
  return true;
}

bool TrackerCore::BarTurns(SessionId session, Agent& agent) {
  const std::set<std::string, std::less<>> ids = agent.device_ids;
  for (const std::string& id : ids) {
    Quarantine(id,
               absl::StrCat("two agents take turns under the name ", agent.id));
  }
  if (!callers_.contains(session)) return false;
  Bar(session, agent.id, "Hello",
      absl::StrCat("two processes use the certificate of agent ", agent.id,
                   " by turns: revoke it, and give each its own"));
  return true;
}

void TrackerCore::Bar(SessionId session, const std::string& agent_id,
                      const std::string& what, const std::string& why) {
  std::erase_if(barred_, [now = clock_.Steady()](const auto& entry) {
    return now >= entry.second;
  });
  barred_[agent_id] = clock_.Steady() + options_.barred;
  LOG(kWarning) << LogEvent("agent_barred") << LogAgent(agent_id)
                << LogReason(why) << "agent " << agent_id
                << " is not let in for "
                << absl::FormatDuration(options_.barred) << ": " << why;
  NoteRefusal(session, what, why);
  Close(session,
        absl::PermissionDeniedError(absl::StrCat("session ended: ", why)));
}

void TrackerCore::CertificatesRevoked(
    const std::map<std::string, std::string>& agents) {
  // A restart of the tracker is no news.
  const auto known = [&](const std::string& id, const std::string& why) {
    const auto last = standings_.Events(
        [&id](const v1::DeviceEvent& event) {
          return event.device_id() == id && event.what() == kRevokedEvent;
        },
        1);
    return !last.empty() && last.front().reason() == Brief(why);
  };
  const bool first = !revoked_agents_.has_value();
  const auto before = std::exchange(revoked_agents_, agents);
  for (const auto& [id, standing] : standings_.all()) {
    const auto revoked = agents.find(standing.agent_id());
    if (revoked == agents.end()) continue;
    const std::string& why = revoked->second;
    if (first ? known(id, why) : before->contains(revoked->first)) continue;
    standings_.Note(id, ClassOf(id), kRevokedEvent, why);
  }
  Settle();
}

std::string TrackerCore::WhyRevoked(const Agent& agent) const {
  if (agent.session || !revoked_agents_) return "";
  const auto found = revoked_agents_->find(agent.id);
  return found == revoked_agents_->end() ? "" : found->second;
}

void TrackerCore::NoteRefusal(SessionId session, const std::string& what,
                              const std::string& why) {
  ++counts_.refusals;
  const auto caller = callers_.find(session);
  const auto named = sessions_.find(session);
  std::string who = "plain text";
  if (caller != callers_.end()) {
    who = IdentityUri(caller->second);
  } else if (named != sessions_.end()) {
    who = absl::StrCat("plain text, agent ", named->second);
  }
  actions_.push_back(Refusal{session, std::move(who), what, why});
}

}  // namespace regatta
