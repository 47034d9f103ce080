#include "device_agent/sensors/temperature_sensor.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "device_agent/sensors/number_file.h"

namespace regatta {
namespace {

// Both interfaces count in thousandths of a degree.
constexpr double kMilli = 1e-3;
constexpr size_t kMaxFiles = 32;

class TemperatureSensor : public Sensor {
 public:
  explicit TemperatureSensor(std::vector<std::string> files)
      : files_(std::move(files)) {}
  std::string name() const override { return "temperature"; }
  std::string unit() const override { return "Cel"; }

  absl::StatusOr<double> Read() override {
    std::optional<double> hottest;
    for (const std::string& file : files_) {
      const std::optional<double> value = ReadNumber(file);
      if (!value.has_value()) continue;
      hottest = std::max(hottest.value_or(*value * kMilli), *value * kMilli);
    }
    if (hottest.has_value()) return *hottest;
    return absl::UnavailableError(
        "no thermal zone or hardware monitor gives a temperature");
  }

 private:
  const std::vector<std::string> files_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Sensor>> CreateTemperatureSensor(
    const SensorContext& context) {
  std::vector<std::string> files =
      MatchingPaths(context.root + "/sys/class/thermal/thermal_zone*/temp");
  for (std::string& file :
       MatchingPaths(context.root + "/sys/class/hwmon/hwmon*/temp*_input")) {
    files.push_back(std::move(file));
  }
  // A machine with hundreds of them must not make a reading slow.
  if (files.size() > kMaxFiles) files.resize(kMaxFiles);
  auto sensor = std::make_unique<TemperatureSensor>(std::move(files));
  if (const auto value = sensor->Read(); !value.ok()) return value.status();
  return sensor;
}

}  // namespace regatta
