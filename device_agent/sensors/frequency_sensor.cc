#include "device_agent/sensors/frequency_sensor.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "device_agent/sensors/number_file.h"

namespace regatta {
namespace {

std::string CpufreqPath(const SensorContext& context, int cpu) {
  return absl::StrCat(context.root, "/sys/devices/system/cpu/cpu", cpu,
                      "/cpufreq/scaling_cur_freq");
}

bool IsOneOf(const std::vector<int>& cpus, int cpu) {
  return cpus.empty() || std::count(cpus.begin(), cpus.end(), cpu) > 0;
}

class FrequencySensor : public Sensor {
 public:
  explicit FrequencySensor(SensorContext context)
      : context_(std::move(context)) {}
  std::string name() const override { return "cpu_frequency"; }
  std::string unit() const override { return "Hz"; }

  absl::StatusOr<double> Read() override {
    Mean mean;
    for (int cpu : context_.cpus) {
      if (const auto khz = ReadNumber(CpufreqPath(context_, cpu))) {
        mean.Add(*khz * 1e3);
      }
    }
    if (mean.count == 0) AddFromCpuinfo(&mean);
    if (mean.count == 0) {
      return absl::UnavailableError(
          "neither cpufreq nor /proc/cpuinfo tells a clock");
    }
    return mean.sum / mean.count;
  }

 private:
  struct Mean {
    double sum = 0;
    int count = 0;
    void Add(double value) {
      sum += value;
      ++count;
    }
  };

  void AddFromCpuinfo(Mean* mean) const {
    std::ifstream file(context_.root + "/proc/cpuinfo");
    int cpu = -1;
    for (std::string line; std::getline(file, line);) {
      const std::vector<std::string> parts =
          absl::StrSplit(line, absl::MaxSplits(':', 1));
      if (parts.size() != 2) continue;
      const absl::string_view key = absl::StripAsciiWhitespace(parts[0]);
      double mhz = 0;
      if (key == "processor") {
        if (!absl::SimpleAtoi(parts[1], &cpu)) cpu = -1;
      } else if (key == "cpu MHz" && IsOneOf(context_.cpus, cpu) &&
                 absl::SimpleAtod(parts[1], &mhz) && mhz > 0) {
        mean->Add(mhz * 1e6);
      }
    }
  }

  const SensorContext context_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Sensor>> CreateFrequencySensor(
    const SensorContext& context) {
  auto sensor = std::make_unique<FrequencySensor>(context);
  if (const auto value = sensor->Read(); !value.ok()) return value.status();
  return sensor;
}

}  // namespace regatta
