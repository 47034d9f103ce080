#include "device_agent/sensors/load_sensor.h"

#include "device_agent/sensors/number_file.h"

namespace regatta {
namespace {

class LoadSensor : public Sensor {
 public:
  explicit LoadSensor(std::string path) : path_(std::move(path)) {}
  std::string name() const override { return "load_average"; }
  std::string unit() const override { return "1"; }

  absl::StatusOr<double> Read() override {
    if (const auto load = ReadNumber(path_)) return *load;
    return absl::UnavailableError(path_ + " gives no load");
  }

 private:
  const std::string path_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Sensor>> CreateLoadSensor(
    const SensorContext& context) {
  auto sensor = std::make_unique<LoadSensor>(context.root + "/proc/loadavg");
  if (const auto value = sensor->Read(); !value.ok()) return value.status();
  return sensor;
}

}  // namespace regatta
