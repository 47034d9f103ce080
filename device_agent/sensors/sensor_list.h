// Every kind of sensor there is.
#ifndef REGATTA_DEVICE_AGENT_SENSORS_SENSOR_LIST_H_
#define REGATTA_DEVICE_AGENT_SENSORS_SENSOR_LIST_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device_agent/sensors/sensor.h"

namespace regatta {

struct SensorKind {
  const char* name;  // Sensor::name
  absl::StatusOr<std::unique_ptr<Sensor>> (*create)(const SensorContext&);
};

// THE list, in sensor_list.cc.
absl::Span<const SensorKind> SensorKinds();

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SENSORS_SENSOR_LIST_H_
