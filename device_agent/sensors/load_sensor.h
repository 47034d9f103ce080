// Runnable tasks of the whole machine, mean over the last minute.
#ifndef REGATTA_DEVICE_AGENT_SENSORS_LOAD_SENSOR_H_
#define REGATTA_DEVICE_AGENT_SENSORS_LOAD_SENSOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "device_agent/sensors/sensor.h"

namespace regatta {

// Unavailable, with the reason, when this board has none.
absl::StatusOr<std::unique_ptr<Sensor>> CreateLoadSensor(
    const SensorContext& context);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SENSORS_LOAD_SENSOR_H_
