#include "device_agent/sensors/busy_sensor.h"

#include <cctype>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

// Of all processors together since the boot, in ticks (usually 10 ms).
struct Ticks {
  double busy = 0, all = 0;
  int processors = 0;
};

class BusySensor : public Sensor {
 public:
  explicit BusySensor(std::string path) : path_(std::move(path)) {}
  std::string name() const override { return "busy_processors"; }
  std::string unit() const override { return "1"; }

  absl::StatusOr<double> Read() override {
    const std::optional<Ticks> now = ReadTicks();
    if (!now.has_value()) {
      return absl::UnavailableError(
          absl::StrCat(path_, " does not say how busy the processors are"));
    }
    // Within a tick nothing is known that was not before.
    if (now->all > last_.all) {
      mean_ =
          now->processors * (now->busy - last_.busy) / (now->all - last_.all);
      last_ = *now;
    }
    return mean_;
  }

 private:
  // "cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ..." and one line each
  // for cpu0, cpu1 ... What guests use is part of USER and NICE.
  std::optional<Ticks> ReadTicks() const {
    std::ifstream file(path_);
    Ticks ticks;
    bool found = false;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string name;
      words >> name;
      if (name.size() > 3 && name.starts_with("cpu") &&
          std::isdigit(static_cast<unsigned char>(name[3])) != 0) {
        ++ticks.processors;
      }
      if (name != "cpu") continue;
      double value = 0;
      for (int i = 0; i < 8 && words >> value; ++i) {
        const bool idle = i == 3 || i == 4;
        ticks.busy += idle ? 0 : value;
        ticks.all += value;
        found = i >= 3;
      }
    }
    if (!found || ticks.processors == 0) return std::nullopt;
    return ticks;
  }

  const std::string path_;
  Ticks last_;
  double mean_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Sensor>> CreateBusySensor(
    const SensorContext& context) {
  auto sensor = std::make_unique<BusySensor>(context.root + "/proc/stat");
  if (const auto value = sensor->Read(); !value.ok()) return value.status();
  return sensor;
}

}  // namespace regatta
