#include "device_agent/sensors/throttle_sensor.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "device_agent/sensors/number_file.h"

namespace regatta {
namespace {

class ThrottleSensor : public Sensor {
 public:
  explicit ThrottleSensor(std::vector<std::string> files)
      : files_(std::move(files)) {}
  std::string name() const override { return "thermal_throttles"; }
  std::string unit() const override { return "1"; }
  bool CountsThrottling() const override { return true; }

  absl::StatusOr<double> Read() override {
    double sum = 0;
    bool any = false;
    for (const std::string& file : files_) {
      if (const auto count = ReadNumber(file)) {
        sum += *count;
        any = true;
      }
    }
    if (any) return sum;
    return absl::UnavailableError("the processors count no throttling");
  }

 private:
  const std::vector<std::string> files_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Sensor>> CreateThrottleSensor(
    const SensorContext& context) {
  std::vector<std::string> files;
  for (int cpu : context.cpus) {
    files.push_back(absl::StrCat(context.root, "/sys/devices/system/cpu/cpu",
                                 cpu, "/thermal_throttle/core_throttle_count"));
  }
  auto sensor = std::make_unique<ThrottleSensor>(std::move(files));
  if (const auto value = sensor->Read(); !value.ok()) return value.status();
  return sensor;
}

}  // namespace regatta
