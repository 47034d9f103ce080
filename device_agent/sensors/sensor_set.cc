#include "device_agent/sensors/sensor_set.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "device_agent/sensors/sensor_list.h"

namespace regatta {

SensorSet::SensorSet(const SensorContext& context) {
  for (const SensorKind& kind : SensorKinds()) {
    absl::StatusOr<std::unique_ptr<Sensor>> sensor = kind.create(context);
    if (sensor.ok()) {
      sensors_.push_back({*std::move(sensor), std::nullopt});
    } else {
      absent_.push_back(
          absl::StrCat(kind.name, ": ", sensor.status().message()));
    }
  }
}

void SensorSet::Before() {
  throttled_ = false;
  for (Placed& placed : sensors_) {
    const absl::StatusOr<double> value = placed.sensor->Read();
    placed.before = value.ok() ? std::optional<double>(*value) : std::nullopt;
  }
}

std::vector<v1::SensorReading> SensorSet::After() {
  std::vector<v1::SensorReading> readings;
  for (Placed& placed : sensors_) {
    const absl::StatusOr<double> after = placed.sensor->Read();
    if (!placed.before.has_value() || !after.ok()) continue;
    v1::SensorReading& reading = readings.emplace_back();
    reading.set_name(placed.sensor->name());
    reading.set_unit(placed.sensor->unit());
    reading.set_before(*placed.before);
    reading.set_after(*after);
    if (placed.sensor->CountsThrottling() && *after > *placed.before) {
      throttled_ = true;
    }
  }
  return readings;
}

double SensorSet::ThrottleCount() {
  double sum = 0;
  for (Placed& placed : sensors_) {
    if (placed.sensor->CountsThrottling()) {
      sum += placed.sensor->Read().value_or(0);
    }
  }
  return sum;
}

}  // namespace regatta
