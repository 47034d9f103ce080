// Clock of the device's processors, mean, in Hz: from cpufreq, else
// /proc/cpuinfo.
#ifndef REGATTA_DEVICE_AGENT_SENSORS_FREQUENCY_SENSOR_H_
#define REGATTA_DEVICE_AGENT_SENSORS_FREQUENCY_SENSOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "device_agent/sensors/sensor.h"

namespace regatta {

// Unavailable, with the reason, when this board has none.
absl::StatusOr<std::unique_ptr<Sensor>> CreateFrequencySensor(
    const SensorContext& context);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SENSORS_FREQUENCY_SENSOR_H_
