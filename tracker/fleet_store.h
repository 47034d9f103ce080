// What the tracker remembers over a restart: its epoch, the boards that it
// knew, what people and it decided about them, and when. Not trials or records:
// those are the server's.
//
// Thread safety: one thread at a time.
#ifndef REGATTA_TRACKER_FLEET_STORE_H_
#define REGATTA_TRACKER_FLEET_STORE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "regatta/v1/device_control.pb.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

struct KnownAgent {
  std::string agent_id;
  // It may hold an assignment: after a restart of the tracker its work is not
  // given to others before it reported.
  bool holds_leases = false;
  bool lost = false;
  int64_t last_seen_unix_ms = 0;
  std::string boot_id;
  std::string agent_version;
  std::string compiler_version;
  std::string sandbox;
  std::vector<v1::DeviceInfo> devices;
};

class FleetStore {
 public:
  virtual ~FleetStore() = default;

  // Of this run of the tracker: one more than that of the run before.
  virtual int64_t tracker_epoch() const = 0;
  // By which leases are proved (lease_proof.h); the same for all runs.
  virtual const std::string& lease_secret() const = 0;
  // What is known now, by id.
  virtual std::vector<KnownAgent> Agents() const = 0;
  // Replaces what is known of these agents; durable when it returns OK. After
  // an error the store may be used again: a later Put stores its own agents.
  virtual absl::Status Put(absl::Span<const KnownAgent> agents) = 0;
  // Durable no later than the next Put.
  virtual absl::Status Forget(const std::string& agent_id) = 0;

  // The latest so many events are kept.
  static constexpr size_t kKeptEvents = 20'000;
  virtual std::vector<v1::DeviceStanding> Devices() const = 0;
  // Replaces what is known of these devices and appends events; all durable
  // when it returns OK, nothing changed after an error.
  virtual absl::Status PutDevices(absl::Span<const v1::DeviceStanding> devices,
                                  absl::Span<const v1::DeviceEvent> events) = 0;
  // Durable no later than the next Put or PutDevices. Its events stay.
  virtual absl::Status ForgetDevice(const std::string& device_id) = 0;
  // Oldest first.
  virtual const std::deque<v1::DeviceEvent>& Events() const = 0;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_FLEET_STORE_H_
