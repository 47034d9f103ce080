#include "device_agent/run/cuda_probe.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/module/cuda_binary.h"
#include "device_agent/run/cuda_device.h"
#include "device_agent/run/cuda_runtime.h"
#include "device_agent/run/probe_kernel.h"

namespace regatta {
namespace {

constexpr int64_t kGroup = 256;
// Fills every processor with as many threads as any architecture holds.
constexpr int64_t kGroupsPerUnit = 8;
// Of a thread of the peak kernel: independent chains of multiply-adds, and
// links of each in one round of its loop.
constexpr int kChains = 8;
constexpr int kLinks = 16;
// Rounds of the shorter of two kernels; the longer does four times as many,
// and the difference of their times leaves the launch out. A simulator takes a
// second for what a device does in a millisecond.
constexpr int32_t kRounds = 64, kSimulatedRounds = 1;
constexpr int32_t kLonger = 4;
// Per thread of the read kernel: loads of 16 bytes.
constexpr int64_t kLoads = 16;
constexpr int64_t kLoadBytes = 16;

constexpr char kHead[] = R"(.version 7.0
.target sm_75
.address_size 64
)";

// in[0]: the factor of every chain; in[1], an integer: rounds.
std::string PeakPtx() {
  std::string ptx = absl::StrCat(kHead, R"(
.visible .entry peak(.param .u64 peak_in, .param .u64 peak_out)
{
  .reg .pred %p<2>;
  .reg .f32 %f<16>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [peak_in];
  ld.param.u64 %rd2, [peak_out];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  ld.global.f32 %f9, [%rd3];
  ld.global.u32 %r1, [%rd3+4];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.s32 %r5, %r3, %r4, %r2;
  cvt.rn.f32.s32 %f10, %r2;
)");
  for (int c = 1; c <= kChains; ++c) {
    absl::StrAppend(&ptx, "  add.f32 %f", c, ", %f", c == 1 ? 10 : c - 1,
                    ", %f9;\n");
  }
  absl::StrAppend(&ptx, "$ROUND:\n");
  for (int link = 0; link < kLinks; ++link) {
    for (int c = 1; c <= kChains; ++c) {
      absl::StrAppend(&ptx, "  fma.rn.f32 %f", c, ", %f", c, ", %f9, %f10;\n");
    }
  }
  absl::StrAppend(&ptx, R"(  add.s32 %r1, %r1, -1;
  setp.ne.s32 %p1, %r1, 0;
  @%p1 bra $ROUND;
)");
  for (int c = 2; c <= kChains; ++c) {
    absl::StrAppend(&ptx, "  add.f32 %f1, %f1, %f", c, ";\n");
  }
  absl::StrAppend(&ptx, R"(  mul.wide.s32 %rd5, %r5, 4;
  add.s64 %rd6, %rd4, %rd5;
  st.global.f32 [%rd6], %f1;
  ret;
}
)");
  return ptx;
}

// Each block reads a stretch of its own; its threads lie side by side.
std::string ReadPtx() {
  std::string ptx = absl::StrCat(kHead, R"(
.visible .entry read(.param .u64 read_in, .param .u64 read_out)
{
  .reg .f32 %f<8>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [read_in];
  ld.param.u64 %rd2, [read_out];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.s32 %r5, %r3, %r4, %r2;
  mul.wide.u32 %rd5, %r2, )",
                                 kLoadBytes, R"(;
  mul.wide.u32 %rd6, %r3, )",
                                 kLoads * kLoadBytes * kGroup, R"(;
  add.s64 %rd7, %rd3, %rd5;
  add.s64 %rd8, %rd7, %rd6;
  mov.f32 %f1, 0f00000000;
)");
  for (int64_t load = 0; load < kLoads; ++load) {
    absl::StrAppend(&ptx, "  ld.global.v4.f32 {%f2, %f3, %f4, %f5}, [%rd8+",
                    load * kLoadBytes * kGroup,
                    "];\n  add.f32 %f2, %f2, %f3;\n  add.f32 %f4, %f4, %f5;\n"
                    "  add.f32 %f2, %f2, %f4;\n  add.f32 %f1, %f1, %f2;\n");
  }
  absl::StrAppend(&ptx, R"(  mul.wide.s32 %rd9, %r5, 4;
  add.s64 %rd10, %rd4, %rd9;
  st.global.f32 [%rd10], %f1;
  ret;
}
)");
  return ptx;
}

Module OnePtxKernel(std::string ptx, const std::string& entry, int64_t in_bytes,
                    int64_t groups) {
  return OneKernel("cuda",
                   SerializeCudaBinary({.arch = "", .cubin = "", .ptx = ptx}),
                   entry, in_bytes, groups, kGroup);
}

absl::StatusOr<std::unique_ptr<ProbeKernel>> LoadPeak(
    const v1::BoardDevice& device, int64_t groups, int32_t rounds) {
  return ProbeKernel::Load(
      CreateCudaRuntime, device.selector(),
      OnePtxKernel(PeakPtx(), "peak", 2 * sizeof(float), groups),
      [rounds](char* input) {
        const float factor = 0.5F;  // chains stay finite
        std::memcpy(input, &factor, sizeof(factor));
        std::memcpy(input + sizeof(factor), &rounds, sizeof(rounds));
      });
}

// The longer of the two kernels into `kernel`.
absl::Status ProbePeak(const v1::BoardDevice& device, v1::ProbeReport* report,
                       std::unique_ptr<ProbeKernel>* kernel) {
  const int64_t groups = kGroupsPerUnit * std::max(1, device.compute_units());
  const int32_t rounds = device.simulated() ? kSimulatedRounds : kRounds;
  ASSIGN_OR_RETURN(const auto shorter, LoadPeak(device, groups, rounds));
  ASSIGN_OR_RETURN(*kernel, LoadPeak(device, groups, kLonger * rounds));
  ASSIGN_OR_RETURN(const double shorter_ns, shorter->Best());
  ASSIGN_OR_RETURN(const double longer_ns, (*kernel)->Best());
  if (longer_ns <= shorter_ns) {
    return absl::UnavailableError(
        absl::StrCat("four times the work took ", longer_ns, " ns, once ",
                     shorter_ns, " ns: the device's clock cannot be right"));
  }
  const double flops = 2.0 * kChains * kLinks * (kLonger - 1) * rounds *
                       static_cast<double>(groups * kGroup);
  report->set_peak_flops_per_s(flops / (longer_ns - shorter_ns) * 1e9);
  return absl::OkStatus();
}

absl::Status ProbeBandwidth(const v1::BoardDevice& device,
                            v1::ProbeReport* report) {
  const int64_t group_bytes = kLoads * kLoadBytes * kGroup;
  const int64_t groups = ProbeReadBytes(device) / group_bytes;
  ASSIGN_OR_RETURN(
      const auto kernel,
      ProbeKernel::Load(
          CreateCudaRuntime, device.selector(),
          OnePtxKernel(ReadPtx(), "read", groups * group_bytes, groups),
          [&](char* input) {
            std::fill_n(reinterpret_cast<float*>(input),
                        groups * group_bytes / sizeof(float), 0.5F);
          }));
  ASSIGN_OR_RETURN(const double call_ns, kernel->Best());
  report->set_bandwidth_bytes_per_s(static_cast<double>(groups * group_bytes) /
                                    call_ns * 1e9);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::ProbeReport> ProbeCudaDevice(const std::string& device) {
  ASSIGN_OR_RETURN(const v1::DeviceList devices, ListCudaDevices());
  ASSIGN_OR_RETURN(const v1::BoardDevice found,
                   DeviceToProbe(devices, "CUDA", device));
  v1::ProbeReport report;
  {
    std::unique_ptr<ProbeKernel> kernel;
    RETURN_IF_ERROR(ProbePeak(found, &report, &kernel));
    ASSIGN_OR_RETURN(const double noise, kernel->Noise());
    report.set_noise_floor(noise);
  }
  RETURN_IF_ERROR(ProbeBandwidth(found, &report));
  return report;
}

}  // namespace regatta
