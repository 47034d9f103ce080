// How many of the machine's processors were busy, all programs' doing, the run
// itself among them: mean since the last reading, since the boot at first. Read
// before and after a run, the second one is of the run. What a host takes away
// from a virtual machine counts as busy.
#ifndef REGATTA_DEVICE_AGENT_SENSORS_BUSY_SENSOR_H_
#define REGATTA_DEVICE_AGENT_SENSORS_BUSY_SENSOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "device_agent/sensors/sensor.h"

namespace regatta {

// Unavailable, with the reason, when this board has none.
absl::StatusOr<std::unique_ptr<Sensor>> CreateBusySensor(
    const SensorContext& context);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SENSORS_BUSY_SENSOR_H_
