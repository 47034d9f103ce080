// What the kinds of devices behind a driver share: a run worker lists them and
// says what the build worker needs to know.
//
// Thread safety: free functions.
#ifndef REGATTA_DEVICE_AGENT_DEVICES_DRIVER_DEVICES_H_
#define REGATTA_DEVICE_AGENT_DEVICES_DRIVER_DEVICES_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "device_agent/devices/device_provider.h"

namespace regatta {

// The processors of a run on such a device: not more than can be locked for it.
std::vector<int> DriverCpus(const Board& board);

struct DriverDeviceName {
  std::string device_id, device_class;
};

// The devices of `kind` that the driver lists and the build worker builds for,
// as the agent serves them under the names of `name_of`. What is there and
// cannot be served is logged with the reason and leaves the others as they are;
// the first reason is the error when nothing is left.
absl::StatusOr<std::vector<ServedDevice>> ServeDriverDevices(
    std::string_view kind, const Board& board, const DriverNeeds& needs,
    const std::function<DriverDeviceName(const v1::BoardDevice&)>& name_of);

// Lower case, with one '-' for whatever a class name cannot have.
std::string ClassSlug(const std::string& text);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_DEVICES_DRIVER_DEVICES_H_
