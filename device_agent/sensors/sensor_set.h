// The sensors that a board has, read before and after a run.
//
// Not thread-safe.
#ifndef REGATTA_DEVICE_AGENT_SENSORS_SENSOR_SET_H_
#define REGATTA_DEVICE_AGENT_SENSORS_SENSOR_SET_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device_agent/sensors/sensor.h"
#include "regatta/v1/trial.pb.h"

namespace regatta {

class SensorSet {
 public:
  // Of all kinds in the list, those that are there.
  explicit SensorSet(const SensorContext& context);

  // Kinds that are not, with the reason: "temperature: no thermal zone ...".
  const std::vector<std::string>& absent() const { return absent_; }

  void Before();
  // Readings of the sensors that answered both times. REQUIRES: Before.
  std::vector<v1::SensorReading> After();
  // The run between the last Before and After was slowed down.
  bool Throttled() const { return throttled_; }
  // Of the sensors that count throttling, summed; for what is shorter than a
  // run. A value that grew means that it was slowed down.
  double ThrottleCount();

 private:
  struct Placed {
    std::unique_ptr<Sensor> sensor;
    std::optional<double> before;
  };
  std::vector<Placed> sensors_;
  std::vector<std::string> absent_;
  bool throttled_ = false;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SENSORS_SENSOR_SET_H_
