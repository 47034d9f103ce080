// What a board's instruments say around a timed run.
//
// To add one: two files like the others here and one line in sensor_list.cc;
// the contract suite in tests/device_agent then covers it (docs/recipes.md).
//
// Not thread-safe: each timing thread has its own.
#ifndef REGATTA_DEVICE_AGENT_SENSORS_SENSOR_H_
#define REGATTA_DEVICE_AGENT_SENSORS_SENSOR_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace regatta {

// Where to look.
struct SensorContext {
  std::string root;       // before every path: "" on a board, a folder in tests
  std::vector<int> cpus;  // of the device
};

class Sensor {
 public:
  virtual ~Sensor() = default;
  virtual std::string name() const = 0;  // "cpu_frequency"
  virtual std::string unit() const = 0;  // "Hz"; "1" for plain numbers
  // The value now, within 1 ms. Unavailable when the instrument has gone.
  virtual absl::StatusOr<double> Read() = 0;
  // A value that grew during a run means that the run was slowed down.
  virtual bool CountsThrottling() const { return false; }
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SENSORS_SENSOR_H_
