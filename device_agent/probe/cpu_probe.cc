#include "device_agent/probe/cpu_probe.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "device_agent/probe/kernels.h"
#include "device_agent/probe/noise_floor.h"
#include "google/protobuf/text_format.h"

namespace regatta {
namespace {

// Grows when the meaning of the numbers changes.
constexpr int kProbeVersion = 1;
constexpr int64_t kLargestSet = int64_t{128} << 20;
constexpr int64_t kPeakWindowNs = 2'000'000;
constexpr int kPeakWindows = 80;
constexpr int64_t kNoiseBlockNs = 1'000'000;
// A floor is what remains when nothing else runs: a disturbed try is repeated.
constexpr int kNoiseAttempts = 3;
constexpr double kDisturbed = 0.1;

absl::Status Pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot run on processor ", cpu, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

CacheSizes ReportedCaches() {
  const auto reported = [](int name) {
    return std::max<int64_t>(0, sysconf(name));
  };
  return {reported(_SC_LEVEL1_DCACHE_SIZE), reported(_SC_LEVEL2_CACHE_SIZE),
          reported(_SC_LEVEL3_CACHE_SIZE)};
}

double MeasurePeak(const FmaKernel& kernel) {
  const int64_t iterations = CalibrateFma(kernel, kPeakWindowNs);
  int64_t best = TimeFma(kernel, iterations);
  for (int i = 1; i < kPeakWindows; ++i) {
    best = std::min(best, TimeFma(kernel, iterations));
  }
  return kernel.flops_per_iteration * static_cast<double>(iterations) * 1e9 /
         static_cast<double>(best);
}

double MeasureNoise(const FmaKernel& kernel) {
  const int64_t iterations = CalibrateFma(kernel, kNoiseBlockNs);
  return NoiseFloor([&] { return TimeFma(kernel, iterations); },
                    /*sessions=*/20, /*blocks_per_side=*/10);
}

// The parts of a probe, in order, each short enough to hold the cores for.
class Probe {
 public:
  explicit Probe(const CpuProbeOptions& options)
      : options_(options), random_(options.seed) {}

  absl::StatusOr<CpuProbeResult> Run() {
    RETURN_IF_ERROR(Pin(options_.cpu));
    const FmaKernel kernel = BestFmaKernel();
    result_.fma_kernel = kernel.name;
    RETURN_IF_ERROR(
        Part([&] { result_.peak_flops_per_s = MeasurePeak(kernel); }));
    const int64_t eighth = options_.memory_bytes / 8;
    memory_ = ProbeMemory::Allocate(
        std::clamp(eighth, int64_t{4} << 20, kLargestSet));
    if (memory_ == nullptr) {
      return absl::ResourceExhaustedError("no memory for the cache probe");
    }
    RETURN_IF_ERROR(Part([&] { MeasureCaches(int64_t{4} << 20); }));
    RETURN_IF_ERROR(Part([&] { MeasureCaches(memory_->bytes()); }));
    result_.caches = Reconcile(FindCaches(curve_), ReportedCaches());
    RETURN_IF_ERROR(Part([&] {
      result_.bandwidth_bytes_per_s =
          ReadBandwidth(*memory_, memory_->bytes(), 5);
    }));
    memory_.reset();
    for (int attempt = 0; attempt < kNoiseAttempts; ++attempt) {
      RETURN_IF_ERROR(Part([&] {
        const double floor = MeasureNoise(kernel);
        result_.noise_floor =
            attempt == 0 ? floor : std::min(floor, result_.noise_floor);
      }));
      if (Undisturbed(result_)) break;
    }
    return result_;
  }

 private:
  bool Stopped() const { return options_.stop != nullptr && *options_.stop; }

  absl::Status Part(const std::function<void()>& part) {
    if (!Stopped()) RETURN_IF_ERROR(options_.exclusively(part));
    if (Stopped()) return absl::CancelledError("the probe was stopped");
    return absl::OkStatus();
  }

  // Goes on from where the last call ended.
  void MeasureCaches(int64_t max_bytes) {
    const int64_t from = curve_.empty() ? 4096 : curve_.back().bytes + 1;
    for (const int64_t bytes : CacheProbeSizes(from, max_bytes)) {
      if (Stopped() || ReachedMemory(curve_)) return;
      curve_.push_back({bytes, LoadLatencyNs(*memory_, bytes, random_)});
    }
  }

  const CpuProbeOptions& options_;
  Random random_;
  CpuProbeResult result_;
  std::vector<LatencyPoint> curve_;
  std::unique_ptr<ProbeMemory> memory_;
};

std::string Key(const std::string& boot_id, const std::string& subject) {
  return absl::StrCat("# probe ", kProbeVersion, " boot ", boot_id, " cpus ",
                      subject);
}

}  // namespace

absl::StatusOr<CpuProbeResult> ProbeCpu(const CpuProbeOptions& options) {
  return Probe(options).Run();
}

bool Undisturbed(const CpuProbeResult& result) {
  return result.noise_floor <= kDisturbed;
}

void FillDevice(const CpuProbeResult& result, v1::DeviceInfo& device) {
  device.set_l1_bytes(result.caches.l1_bytes);
  device.set_l2_bytes(result.caches.l2_bytes);
  device.set_l3_bytes(result.caches.l3_bytes);
  device.set_peak_flops_per_s(result.peak_flops_per_s);
  device.set_bandwidth_bytes_per_s(result.bandwidth_bytes_per_s);
  const bool known = Undisturbed(result);
  device.set_noise_floor(known ? result.noise_floor : 0);
  device.set_has_noise_floor(known);
}

absl::StatusOr<CpuProbeResult> LoadProbe(const std::string& path,
                                         const std::string& boot_id,
                                         const std::string& subject) {
  std::ifstream file(path);
  std::string key;
  if (!std::getline(file, key) || key != Key(boot_id, subject)) {
    return absl::NotFoundError(absl::StrCat("no probe of this boot in ", path));
  }
  std::stringstream text;
  text << file.rdbuf();
  v1::DeviceInfo device;
  if (!google::protobuf::TextFormat::ParseFromString(text.str(), &device)) {
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  }
  CpuProbeResult result;
  result.caches = {device.l1_bytes(), device.l2_bytes(), device.l3_bytes()};
  result.peak_flops_per_s = device.peak_flops_per_s();
  result.bandwidth_bytes_per_s = device.bandwidth_bytes_per_s();
  result.noise_floor = device.noise_floor();
  const auto positive = [](double v) { return std::isfinite(v) && v > 0; };
  if (!positive(result.peak_flops_per_s) ||
      !positive(result.bandwidth_bytes_per_s) ||
      !std::isfinite(result.noise_floor) || result.noise_floor < 0 ||
      result.caches.l1_bytes < 0 || result.caches.l2_bytes < 0 ||
      result.caches.l3_bytes < 0) {
    return absl::DataLossError(absl::StrCat(path, " holds impossible numbers"));
  }
  return result;
}

absl::Status SaveProbe(const std::string& path, const std::string& boot_id,
                       const std::string& subject,
                       const CpuProbeResult& result) {
  v1::DeviceInfo device;
  FillDevice(result, device);
  std::string text;
  google::protobuf::TextFormat::PrintToString(device, &text);
  const std::string temporary = absl::StrCat(path, ".new");
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << Key(boot_id, subject) << "\n" << text;
    if (!file.flush()) {
      return absl::InternalError(absl::StrCat("cannot write ", temporary));
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return absl::InternalError(
        absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace regatta
