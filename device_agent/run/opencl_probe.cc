#include "device_agent/run/opencl_probe.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "device_agent/run/opencl_device.h"
#include "device_agent/run/opencl_runtime.h"
#include "device_agent/run/probe_kernel.h"

namespace regatta {
namespace {

constexpr int64_t kGroup = 64;
// Enough work-items to fill a large device many times over.
constexpr int64_t kGroupsPerUnit = 32;
// Per work-item of the read kernel: loads of 16 bytes.
constexpr int64_t kLoads = 16;
constexpr int64_t kLoadBytes = 16;

// Eight independent chains of multiply-adds on vectors of TYPE. The operands
// come from memory, so that nothing can be computed beforehand. Written out, as
// schedules' code has it: drivers may fuse that, while PoCL's mad() multiplies
// and adds, half as fast.
constexpr int64_t kSteps = 256;
constexpr int64_t kChains = 8;
constexpr char kPeakSource[] = R"(
__kernel void peak(__global const float* in, __global float* out) {
  const TYPE x = (TYPE)(in[0]), y = (TYPE)(in[1] + get_local_id(0));
  TYPE a = y, b = y + 1, c = y + 2, d = y + 3;
  TYPE e = y + 4, f = y + 5, g = y + 6, h = y + 7;
  for (int i = 0; i < STEPS; ++i) {
    a = a * x + y; b = b * x + y; c = c * x + y; d = d * x + y;
    e = e * x + y; f = f * x + y; g = g * x + y; h = h * x + y;
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

absl::StatusOr<std::unique_ptr<ProbeKernel>> LoadKernel(
    const v1::BoardDevice& device, std::string source, const char* entry,
    int64_t in_bytes, int64_t groups) {
  return ProbeKernel::Load(
      CreateOpenClRuntime, device.selector(),
      OneKernel("opencl", std::move(source), entry, in_bytes, groups, kGroup),
      [in_bytes](char* input) {
        // Halves: chains of multiply-adds stay finite.
        std::fill_n(reinterpret_cast<float*>(input),
                    in_bytes / static_cast<int64_t>(sizeof(float)), 0.5F);
      });
}

struct VectorType {
  const char* name;
  const char* first;
  int64_t lanes;
};
// Drivers differ in which they turn into their widest instructions.
constexpr VectorType kVectorTypes[] = {{"float", "(v)", 1},
                                       {"float4", "(v).s0", 4},
                                       {"float8", "(v).s0", 8},
                                       {"float16", "(v).s0", 16}};

// The fastest of the peak kernels into `kernel`.
absl::Status ProbePeak(const v1::BoardDevice& device, v1::ProbeReport* report,
                       std::unique_ptr<ProbeKernel>* kernel) {
  const int64_t groups = kGroupsPerUnit * std::max(1, device.compute_units());
  for (const VectorType& type : kVectorTypes) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<ProbeKernel> candidate,
        LoadKernel(
            device,
            absl::StrCat("#define TYPE ", type.name, "\n#define STEPS ", kSteps,
                         "\n#define FIRST(v) ", type.first, kPeakSource),
            "peak", 2 * sizeof(float), groups));
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
  const int64_t group_bytes = kLoads * kLoadBytes * kGroup;
  const int64_t groups = ProbeReadBytes(device) / group_bytes;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<ProbeKernel> kernel,
      LoadKernel(device,
                 absl::StrCat("#define LOADS ", kLoads, "\n#define GROUP ",
                              kGroup, kReadSource),
                 "read", groups * group_bytes, groups));
  ASSIGN_OR_RETURN(const double call_ns, kernel->Best());
  report->set_bandwidth_bytes_per_s(static_cast<double>(groups * group_bytes) /
                                    call_ns * 1e9);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::ProbeReport> ProbeOpenClDevice(const std::string& device) {
  ASSIGN_OR_RETURN(const v1::DeviceList devices, ListOpenClDevices());
  ASSIGN_OR_RETURN(const v1::BoardDevice found,
                   DeviceToProbe(devices, "OpenCL", device));
  v1::ProbeReport report;
  std::unique_ptr<ProbeKernel> kernel;
  RETURN_IF_ERROR(ProbePeak(found, &report, &kernel));
  RETURN_IF_ERROR(ProbeBandwidth(found, &report));
  ASSIGN_OR_RETURN(const double noise, kernel->Noise());
  report.set_noise_floor(noise);
  return report;
}

}  // namespace regatta
