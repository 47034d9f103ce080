// The tracker's page of metrics; docs/metrics.md lists them.
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/outcome_metrics.h"
#include "proto/outcome_names.h"
#include "tracker/tracker_core.h"

namespace regatta {
namespace {

// A sample for every value of an enumeration, those without devices included.
template <typename Enum>
void CollectStates(const std::map<Enum, int64_t>& counts, int most,
                   bool (*valid)(int), std::string (*name)(Enum),
                   const std::string& family, const std::string& help,
                   const std::string& label, MetricsPage& page) {
  for (int number = 1; number <= most; ++number) {
    if (!valid(number)) continue;
    const auto value = static_cast<Enum>(number);
    const auto found = counts.find(value);
    page.Gauge(family, help,
               found == counts.end() ? 0 : static_cast<double>(found->second),
               {{label, name(value)}});
  }
}

}  // namespace

void TrackerCore::CollectDevices(MetricsPage& page) const {
  std::map<v1::Presence, int64_t> presence;
  std::map<v1::Trust, int64_t> trust;
  std::map<v1::OperatorState, int64_t> operators;
  std::map<std::string, int64_t> queued, running;  // by class
  for (const auto& [id, device] : registry_.devices()) {
    const Agent& agent = registry_.agents().find(device.agent_id)->second;
    ++presence[agent.presence];
    if (const v1::DeviceStanding* standing = standings_.Find(id)) {
      ++trust[standing->trust()];
      ++operators[standing->operator_state()];
    }
    queued[device.info.device_class()] += 0;
    running[device.info.device_class()] += 0;
  }
  CollectStates<v1::Presence>(
      presence, v1::Presence_MAX, v1::Presence_IsValid, PresenceName,
      "regatta_tracker_devices_by_presence",
      "Devices, by whether they are there", "presence", page);
  CollectStates<v1::Trust>(trust, v1::Trust_MAX, v1::Trust_IsValid, TrustName,
                           "regatta_tracker_devices_by_trust",
                           "Devices, by whether their results are believed",
                           "trust", page);
  CollectStates<v1::OperatorState>(
      operators, v1::OperatorState_MAX, v1::OperatorState_IsValid,
      OperatorStateName, "regatta_tracker_devices_by_operator_state",
      "Devices, by what people want of them", "operator_state", page);

  for (const DispatchQueue::Waiting& waiting : queue_.Summary()) {
    queued[waiting.key.device_class] += waiting.count;
  }
  for (const auto& [id, lease] : leases_.all()) {
    const auto device = registry_.devices().find(lease.device_id);
    if (device != registry_.devices().end()) {
      ++running[device->second.info.device_class()];
    }
  }
  for (const auto& [device_class, count] : queued) {
    page.Gauge("regatta_tracker_queued_assignments",
               "Work that waits for a device, by class",
               static_cast<double>(count), {{"device_class", device_class}});
  }
  for (const auto& [device_class, count] : running) {
    page.Gauge("regatta_tracker_leased_assignments",
               "Work that devices hold, by class", static_cast<double>(count),
               {{"device_class", device_class}});
  }
}

void TrackerCore::Collect(MetricsPage& page) const {
  CollectDevices(page);
  int64_t agents = 0, servers = 0;
  for (const auto& [id, agent] : registry_.agents()) {
    agents += agent.session ? 1 : 0;
  }
  for (const auto& [id, server] : servers_) servers += server.stream ? 1 : 0;
  page.Gauge("regatta_tracker_connected_agents", "Agents with a session",
             static_cast<double>(agents));
  page.Gauge("regatta_tracker_connected_servers", "Servers with a stream",
             static_cast<double>(servers));
  page.Gauge("regatta_tracker_buffered_results",
             "Results that wait for their server's commit",
             static_cast<double>(results_.size()));
  page.Gauge("regatta_tracker_epoch", "Starts of this tracker so far",
             static_cast<double>(store_.tracker_epoch()));
  const struct {
    const char* name;
    const char* help;
    int64_t count;
  } counters[] = {
      {"heartbeats_total", "Heartbeats of agents", counts_.heartbeats},
      {"assignments_total", "Assignments that were sent to agents",
       counts_.assignments},
      {"assignments_refused_total", "Assignments that agents did not accept",
       counts_.assignments_refused},
      {"lease_expiries_total",
       "Leases that ran out before their agent renewed them",
       counts_.leases_expired},
      {"agents_lost_total",
       "Agents whose work went to others after their silence",
       counts_.agents_lost},
      {"work_given_up_total", "Work that ended after its last lost attempt",
       counts_.given_up},
      {"refusals_total", "Hellos, sessions and results that were refused",
       counts_.refusals},
  };
  for (const auto& counter : counters) {
    page.Counter(absl::StrCat("regatta_tracker_", counter.name), counter.help,
                 static_cast<double>(counter.count));
  }
  AddOutcomes("regatta_tracker_results_total",
              "Results that came from agents, by outcome; one that comes again "
              "counts again",
              counts_.results, page);
}

}  // namespace regatta
