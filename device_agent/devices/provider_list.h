// All kinds of devices that an agent can serve.
#ifndef REGATTA_DEVICE_AGENT_DEVICES_PROVIDER_LIST_H_
#define REGATTA_DEVICE_AGENT_DEVICES_PROVIDER_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "device_agent/devices/device_provider.h"

namespace regatta {

using Providers = std::vector<const DeviceProvider*>;

// In the order of the list.
const Providers& AllProviders();

// Those that `kinds` names, separated by commas ("cpu,opencl"), in its order.
// InvalidArgument, naming what there is, for a kind that is not listed, one
// that is given twice, or none.
absl::StatusOr<Providers> ChooseProviders(std::string_view kinds);

// The devices of all `providers`, in their order; those of an emulated board
// are simulated, and their classes say so. A kind that has none here or
// cannot be served is left out, which is logged. FailedPrecondition when
// nothing is left to serve; the error says why.
absl::StatusOr<std::vector<FoundDevice>> FindDevices(const Providers& providers,
                                                     const Board& board);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_DEVICES_PROVIDER_LIST_H_
