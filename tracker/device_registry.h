// Agents and their devices as the tracker sees them, and which devices are
// free for what.
//
// Not thread-safe. Pointers stay valid until the agent or device is removed.
#ifndef REGATTA_TRACKER_DEVICE_REGISTRY_H_
#define REGATTA_TRACKER_DEVICE_REGISTRY_H_

#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "regatta/v1/fleet_service.pb.h"
#include "tracker/actions.h"
#include "tracker/dispatch_queue.h"
#include "tracker/fleet_store.h"
#include "tracker/health.h"
#include "tracker/indexed_map.h"

namespace regatta {

// A device with room for one more assignment. Ordered by who is to get it:
// the least busy, then the one that finished work longest ago.
struct FreeDevice {
  int load = 0;
  int64_t idle_order = 0;
  std::string device_id;
  friend auto operator<=>(const FreeDevice&, const FreeDevice&) = default;
};

struct Device {
  v1::DeviceInfo info;
  std::string agent_id;
  SteadyTime not_before;  // cools down until then
  std::string refusal;    // why it last refused work; "" since it took some
  int64_t idle_order = 0;
  // Canaries (tracker_canaries.cc).
  std::string canary;       // the round that runs; "": none
  SteadyTime canary_after;  // the next one starts no earlier
  SteadyTime canary_due;    // when a healthy board is proven again
  std::optional<SteadyTime> canary_passed;
  int64_t trials_since_canary = 0;
  int canary_voids = 0;      // rounds in a row that said nothing
  int canary_disturbed = 0;  // rounds in a row, by a busy machine
  int canary_refusals = 0;   // rounds in a row that its agent did not take
  std::string no_canary;     // why it goes without; "": it does not
  // For people.
  std::string state;
  SteadyTime state_since;
  // Where it stands in the registry's index.
  MatchKey key;
  std::optional<FreeDevice> free;
  bool serving = false;
};

struct Agent {
  std::string id;
  std::string instance_id;
  std::string boot_id;
  std::string agent_version;
  std::string compiler_version;
  std::string space;
  int32_t space_version = 0;
  std::string sandbox;
  std::optional<int64_t> clock_offset_ms;  // its wall clock less this one's

  std::optional<SessionId> session;
  bool local = false;  // on this machine
  // It said that it leaves and will be back by then.
  std::optional<SteadyTime> returns_by;
  // Its board's power is being switched: it is away until then at the latest.
  std::optional<SteadyTime> reboot_until;
  SteadyTime connected;  // for the last time
  SteadyTime last_seen;
  absl::Duration quiet;
  v1::Presence presence = v1::PRESENCE_SUSPECT;
  // Processes that were replaced under this name, and when one of them came
  // back: two of them run.
  std::deque<std::string> past_instances;
  std::deque<SteadyTime> takeovers;
  LoopWatch loop;
  bool measure_only = false;    // its modules come from builders
  bool devices_follow = false;  // it has yet to say which devices it has
  // Results of this agent were left to its spool because the buffer was full:
  // it must send again.
  bool owes_results = false;
  // When it sent results for trials that it does not hold, of late.
  std::deque<SteadyTime> spoke_for_others;
  // Servers that were given up while this agent's spool had results for them:
  // it must send again when one of them comes back.
  std::set<std::string> owed_servers;

  // The store says that it may hold leases.
  bool holds_stored = false;
  // It held leases when the last tracker ended, and has not reported.
  bool unreported = false;
  SteadyTime last_leased;
  std::set<std::string, std::less<>> device_ids;
};

class DeviceRegistry {
 public:
  // Creates the agent when it is not known.
  Agent& Upsert(std::string_view agent_id);
  Agent* FindAgent(std::string_view agent_id);
  Device* FindDevice(std::string_view device_id);
  void Remove(std::string_view agent_id);

  // Adds or replaces a device of the agent. REQUIRES: no other agent's.
  Device& PutDevice(Agent& agent, const v1::DeviceInfo& info);
  void RemoveDevice(std::string_view device_id);

  // Says whether the device has room (`load` assignments held) or not.
  void SetFree(Device& device, std::optional<int> load);
  // Best first.
  const std::set<FreeDevice>& Free(const MatchKey& key) const;
  // Says whether the device is there and takes work, be it busy or not.
  void SetServing(Device& device, bool serving);
  // Of the devices of the class that are serving.
  int64_t CreditOfClass(std::string_view device_class) const;
  const std::set<std::string>& OfClass(std::string_view device_class) const;
  // Agents that are `unreported`, and whether the class has devices of any.
  const std::set<std::string>& unreported() const { return unreported_; }
  bool HasUnreported(std::string_view device_class) const;
  void SetUnreported(Agent& agent, bool unreported);
  // Devices that were put or removed since the last call.
  std::set<std::string> TakeTouched() { return std::exchange(touched_, {}); }
  // CHECKs what is kept for each class against the devices.
  void CheckIndices() const;
  // All devices that agree with the key, present or not.
  const std::set<std::string>& Matching(const MatchKey& key) const;

  IndexedMap<std::string, Agent>& agents() { return agents_; }
  const IndexedMap<std::string, Agent>& agents() const { return agents_; }
  const IndexedMap<std::string, Device>& devices() const { return devices_; }

 private:
  struct Class {
    std::set<std::string> device_ids;
    int64_t credit = 0;      // of those that are serving
    int64_t unreported = 0;  // devices of agents that are
  };
  void Unindex(Device& device);
  // Adds the device to the sums of its class, or takes it out.
  void Count(const Device& device, bool unreported, int64_t sign);

  IndexedMap<std::string, Agent> agents_;
  IndexedMap<std::string, Device> devices_;
  std::map<std::string, Class, std::less<>> classes_;
  std::set<std::string> unreported_;
  std::set<std::string> touched_;
  std::map<MatchKey, std::set<std::string>> matching_;
  std::map<MatchKey, std::set<FreeDevice>> free_;
};

// What the store keeps of the agent.
KnownAgent ToKnown(const Agent& agent, const DeviceRegistry& registry,
                   int64_t last_seen_unix_ms);

}  // namespace regatta

#endif  // REGATTA_TRACKER_DEVICE_REGISTRY_H_
