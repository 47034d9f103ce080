// From what a driver says of a device to the target that code for it has.
// Pure functions.
#ifndef REGATTA_DEVICE_AGENT_BUILD_DEVICE_TARGET_H_
#define REGATTA_DEVICE_AGENT_BUILD_DEVICE_TARGET_H_

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

// Not completed yet. InvalidArgument when the driver says what no target can
// hold.
absl::StatusOr<Target> TargetOfDevice(const v1::BoardDevice& device);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_BUILD_DEVICE_TARGET_H_
