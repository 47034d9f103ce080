#include "device_agent/sensors/sensor_list.h"

#include "device_agent/sensors/busy_sensor.h"
#include "device_agent/sensors/frequency_sensor.h"
#include "device_agent/sensors/load_sensor.h"
#include "device_agent/sensors/temperature_sensor.h"
#include "device_agent/sensors/throttle_sensor.h"

namespace regatta {

absl::Span<const SensorKind> SensorKinds() {
  static constexpr SensorKind kKinds[] = {
      {"cpu_frequency", CreateFrequencySensor},
      {"temperature", CreateTemperatureSensor},
      {"load_average", CreateLoadSensor},
      {"busy_processors", CreateBusySensor},
      {"thermal_throttles", CreateThrottleSensor},
  };
  return kKinds;
}

}  // namespace regatta
