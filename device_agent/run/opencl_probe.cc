#include "device_agent/run/opencl_probe.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "device_agent/probe/noise_floor.h"
#include "device_agent/run/opencl_device.h"
#include "device_agent/run/opencl_runtime.h"

namespace regatta {
namespace {

constexpr int64_t kGroup = 64;
// Enough work-items to fill a large device many times over.
constexpr int64_t kGroupsPerUnit = 32;
constexpr int kWindows = 30;
constexpr int64_t kWindowNs = 2'000'000;
constexpr int64_t kNoiseBlockNs = 1'000'000;
constexpr int kSessions = 20;
constexpr int kBlocksPerSide = 5;
constexpr int64_t kLargestBuffer = int64_t{256} << 20;
constexpr int64_t kSmallestBuffer = int64_t{16} << 20;
// Per work-item of the read kernel: loads of 16 bytes.
constexpr int64_t kLoads = 16;
constexpr int64_t kLoadBytes = 16;

// Eight independent chains of multiply-adds on vectors of TYPE, LANES wide. The
// operands come from memory, so that nothing can be computed beforehand.
constexpr int64_t kSteps = 256;
constexpr int64_t kChains = 8;
constexpr char kPeakSource[] = R"(
__kernel void peak(__global const float* in, __global float* out) {
  const TYPE x = (TYPE)(in[0]), y = (TYPE)(in[1] + get_local_id(0));
  TYPE a = y, b = y + 1, c = y + 2, d = y + 3;
  TYPE e = y + 4, f = y + 5, g = y + 6, h = y + 7;
  for (int i = 0; i < STEPS; ++i) {
    a = mad(a, x, y); b = mad(b, x, y); c = mad(c, x, y); d = mad(d, x, y);
    e = mad(e, x, y); f = mad(f, x, y); g = mad(g, x, y); h = mad(h, x, y);
  }
  const TYPE sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
  out[get_global_id(0)] = FIRST(sum);
}
)";

// Each group reads a stretch of its own; its work-items lie side by side.
constexpr char kReadSource[] = R"(
__kernel void read(__global const float* in, __global float* out) {
  __global const float4* from =
      (__global const float4*)in + get_group_id(0) * LOADS * GROUP;
  float4 sum = (float4)(0.0f);
  for (int i = 0; i < LOADS; ++i) sum += from[i * GROUP + get_local_id(0)];
  out[get_global_id(0)] = sum.x + sum.y + sum.z + sum.w;
}
)";

// A module of one kernel that reads `in_bytes` and writes a float per
// work-item.
Module OneKernel(std::string source, const char* entry, int64_t in_bytes,
                 int64_t groups) {
  Module module;
  module.name = kTrialModuleName;
  module.target = "opencl";
  module.loadable = std::move(source);
  ModuleBuffer in, out;
  in.name = "in";
  in.bytes = in_bytes;
  out.name = "out";
  out.role = BufferRole::kOutput;
  out.bytes = groups * kGroup * static_cast<int64_t>(sizeof(float));
  module.buffers = {in, out};
  module.kernels = {ModuleKernel{entry, {0, 1}, {groups}, {kGroup}}};
  module.host_sequence = {0};
  return module;
}

absl::Status StatusOf(const MaybeFailure& failure) {
  return failure.has_value() ? absl::UnavailableError(failure->detail())
                             : absl::OkStatus();
}

// One kernel that is loaded, warm and timed.
class TimedKernel {
 public:
  static absl::StatusOr<std::unique_ptr<TimedKernel>> Load(
      const std::string& device, Module module) {
    std::unique_ptr<TimedKernel> kernel(new TimedKernel(std::move(module)));
    RETURN_IF_ERROR(kernel->Start(device));
    return kernel;
  }

  // Nanoseconds of one call: the least of kWindows windows.
  absl::StatusOr<double> Best() {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kWindows; ++i) {
      ASSIGN_OR_RETURN(const int64_t elapsed, Time(CallsIn(kWindowNs)));
      best = std::min(best, static_cast<double>(elapsed) /
                                static_cast<double>(CallsIn(kWindowNs)));
    }
    return best;
  }
  absl::StatusOr<int64_t> Time(int64_t calls) {
    int64_t elapsed_ns = 0;
    RETURN_IF_ERROR(StatusOf(runtime_->TimeCalls(calls, &elapsed_ns)));
    return std::max<int64_t>(1, elapsed_ns);
  }
  int64_t CallsIn(int64_t ns) const {
    return std::max<int64_t>(1, ns / call_ns_);
  }

 private:
  explicit TimedKernel(Module module) : module_(std::move(module)) {}

  absl::Status Start(const std::string& device) {
    RuntimeOptions options;
    options.clock = &RealClock();
    options.device = device;
    RuntimeOrFailure created = CreateOpenClRuntime(module_, options);
    RETURN_IF_ERROR(StatusOf(created.failure));
    runtime_ = std::move(created.runtime);
    ASSIGN_OR_RETURN(
        GuardedMemory input,
        GuardedMemory::Allocate("in", module_.buffers[0].bytes, 64));
    // Halves: chains of multiply-adds stay finite.
    std::fill_n(reinterpret_cast<float*>(input.data()),
                module_.buffers[0].bytes / sizeof(float), 0.5F);
    inputs_.push_back(std::move(input));
    RETURN_IF_ERROR(StatusOf(runtime_->SetInputs(inputs_)));
    RETURN_IF_ERROR(StatusOf(runtime_->Call()));
    ASSIGN_OR_RETURN(call_ns_, Time(1));
    ASSIGN_OR_RETURN(const int64_t again, Time(CallsIn(kWindowNs)));
    call_ns_ = std::max<int64_t>(1, again / CallsIn(kWindowNs));
    return absl::OkStatus();
  }

  const Module module_;
  std::vector<GuardedMemory> inputs_;
  std::unique_ptr<ModuleRuntime> runtime_;  // after what it reads
  int64_t call_ns_ = 1;
};

struct VectorType {
  const char* name;
  const char* first;
  int64_t lanes;
};
// Drivers differ in which they turn into their widest instructions.
constexpr VectorType kVectorTypes[] = {
    {"float", "(v)", 1}, {"float4", "(v).s0", 4}, {"float8", "(v).s0", 8}};

// The fastest of the peak kernels into `kernel`.
absl::Status ProbePeak(const v1::BoardDevice& device, v1::ProbeReport* report,
                       std::unique_ptr<TimedKernel>* kernel) {
  const int64_t groups = kGroupsPerUnit * std::max(1, device.compute_units());
  for (const VectorType& type : kVectorTypes) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<TimedKernel> candidate,
        TimedKernel::Load(device.selector(),
                          OneKernel(absl::StrCat("#define TYPE ", type.name,
                                                 "\n#define STEPS ", kSteps,
                                                 "\n#define FIRST(v) ",
                                                 type.first, kPeakSource),
                                    "peak", 2 * sizeof(float), groups)));
    ASSIGN_OR_RETURN(const double call_ns, candidate->Best());
    const double flops =
        static_cast<double>(2 * kSteps * kChains * type.lanes) *
        static_cast<double>(groups * kGroup);
    const double rate = flops / call_ns * 1e9;
    if (rate <= report->peak_flops_per_s()) continue;
    report->set_peak_flops_per_s(rate);
    *kernel = std::move(candidate);
  }
  return absl::OkStatus();
}

absl::Status ProbeBandwidth(const v1::BoardDevice& device,
                            v1::ProbeReport* report) {
  const int64_t wanted =
      std::min(std::max(4 * device.cache_bytes(), kSmallestBuffer),
               std::min(kLargestBuffer,
                        std::max(device.memory_bytes() / 8, kSmallestBuffer)));
  const int64_t group_bytes = kLoads * kLoadBytes * kGroup;
  const int64_t groups = wanted / group_bytes;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<TimedKernel> kernel,
      TimedKernel::Load(
          device.selector(),
          OneKernel(absl::StrCat("#define LOADS ", kLoads, "\n#define GROUP ",
                                 kGroup, kReadSource),
                    "read", groups * group_bytes, groups)));
  ASSIGN_OR_RETURN(const double call_ns, kernel->Best());
  report->set_bandwidth_bytes_per_s(static_cast<double>(groups * group_bytes) /
                                    call_ns * 1e9);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::ProbeReport> ProbeOpenClDevice(const std::string& device) {
  ASSIGN_OR_RETURN(const std::vector<v1::BoardDevice> devices,
                   ListOpenClDevices());
  const auto found = std::find_if(
      devices.begin(), devices.end(), [&](const v1::BoardDevice& one) {
        return device.empty() || one.selector() == device;
      });
  if (found == devices.end()) {
    return absl::UnavailableError(
        absl::StrCat("OpenCL device ", device, " is not there"));
  }
  v1::ProbeReport report;
  std::unique_ptr<TimedKernel> kernel;
  RETURN_IF_ERROR(ProbePeak(*found, &report, &kernel));
  RETURN_IF_ERROR(ProbeBandwidth(*found, &report));
  absl::Status failed;
  const int64_t calls = kernel->CallsIn(kNoiseBlockNs);
  report.set_noise_floor(NoiseFloor(
      [&]() -> int64_t {
        const absl::StatusOr<int64_t> elapsed = kernel->Time(calls);
        if (!elapsed.ok()) failed = elapsed.status();
        return elapsed.value_or(1);
      },
      kSessions, kBlocksPerSide));
  RETURN_IF_ERROR(failed);
  return report;
}

}  // namespace regatta
