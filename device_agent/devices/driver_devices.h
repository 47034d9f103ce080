// What the kinds of devices behind a driver share: a run worker lists them and
// says what the build worker needs to know.
//
// Thread safety: free functions.
#ifndef REGATTA_DEVICE_AGENT_DEVICES_DRIVER_DEVICES_H_
#define REGATTA_DEVICE_AGENT_DEVICES_DRIVER_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device_agent/devices/device_provider.h"

namespace regatta {

// The processors of a run on such a device: not more than can be locked for it.
std::vector<int> DriverCpus(const Board& board);

// The devices of `kind` that the driver lists. Unavailable with what it said
// when it fails.
absl::StatusOr<std::vector<v1::BoardDevice>> ListDriverDevices(
    const std::string& kind, const Board& board, const DriverNeeds& needs);

// `device` as the agent serves it under a name and a class of its own. The
// build worker's error when it does not build for it.
absl::StatusOr<ServedDevice> ServeDriverDevice(const Board& board,
                                               const v1::BoardDevice& device,
                                               const std::string& device_id,
                                               const std::string& device_class,
                                               DriverNeeds needs);

// Lower case, with one '-' for whatever a class name cannot have.
std::string ClassSlug(const std::string& text);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_DEVICES_DRIVER_DEVICES_H_
