#include "device_agent/run/probe_kernel.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "device_agent/probe/noise_floor.h"

namespace regatta {
namespace {

constexpr int kWindows = 30;
constexpr int64_t kWindowNs = 2'000'000;
constexpr int64_t kNoiseBlockNs = 1'000'000;
constexpr int kSessions = 20;
constexpr int kBlocksPerSide = 5;
constexpr int64_t kLargestBuffer = int64_t{256} << 20;
constexpr int64_t kSmallestBuffer = int64_t{16} << 20;

absl::Status StatusOf(const MaybeFailure& failure) {
  return failure.has_value() ? absl::UnavailableError(failure->detail())
                             : absl::OkStatus();
}

}  // namespace

Module OneKernel(std::string target, std::string loadable,
                 const std::string& entry, int64_t in_bytes, int64_t groups,
                 int64_t group) {
  Module module;
  module.name = kTrialModuleName;
  module.target = std::move(target);
  module.loadable = std::move(loadable);
  ModuleBuffer in, out;
  in.name = "in";
  in.bytes = in_bytes;
  out.name = "out";
  out.role = BufferRole::kOutput;
  out.bytes = groups * group * static_cast<int64_t>(sizeof(float));
  module.buffers = {in, out};
  module.kernels = {ModuleKernel{entry, {0, 1}, {groups}, {group}}};
  module.host_sequence = {0};
  return module;
}

absl::StatusOr<std::unique_ptr<ProbeKernel>> ProbeKernel::Load(
    Create create, const std::string& selector, Module module,
    const std::function<void(char*)>& fill) {
  std::unique_ptr<ProbeKernel> kernel(new ProbeKernel(std::move(module)));
  RETURN_IF_ERROR(kernel->Start(create, selector, fill));
  return kernel;
}

absl::Status ProbeKernel::Start(Create create, const std::string& selector,
                                const std::function<void(char*)>& fill) {
  RuntimeOptions options;
  options.clock = &RealClock();
  options.host_clock = &RealClock();
  options.device = selector;
  RuntimeOrFailure created = create(module_, options);
  RETURN_IF_ERROR(StatusOf(created.failure));
  runtime_ = std::move(created.runtime);
  ASSIGN_OR_RETURN(GuardedMemory input,
                   GuardedMemory::Allocate("in", module_.buffers[0].bytes, 64));
  fill(input.data());
  inputs_.push_back(std::move(input));
  RETURN_IF_ERROR(StatusOf(runtime_->SetInputs(inputs_)));
  RETURN_IF_ERROR(StatusOf(runtime_->Call()));
  ASSIGN_OR_RETURN(call_ns_, Time(1));
  ASSIGN_OR_RETURN(const int64_t again, Time(CallsIn(kWindowNs)));
  call_ns_ = std::max<int64_t>(1, again / CallsIn(kWindowNs));
  return absl::OkStatus();
}

absl::StatusOr<double> ProbeKernel::Best() {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kWindows; ++i) {
    ASSIGN_OR_RETURN(const int64_t elapsed, Time(CallsIn(kWindowNs)));
    best = std::min(best, static_cast<double>(elapsed) /
                              static_cast<double>(CallsIn(kWindowNs)));
  }
  return best;
}

absl::StatusOr<int64_t> ProbeKernel::Time(int64_t calls) {
  int64_t elapsed_ns = 0;
  RETURN_IF_ERROR(StatusOf(runtime_->TimeCalls(calls, &elapsed_ns)));
  return std::max<int64_t>(1, elapsed_ns);
}

int64_t ProbeKernel::CallsIn(int64_t ns) const {
  return std::max<int64_t>(1, ns / call_ns_);
}

absl::StatusOr<double> ProbeKernel::Noise() {
  absl::Status failed;
  const int64_t calls = CallsIn(kNoiseBlockNs);
  const double noise = NoiseFloor(
      [&]() -> int64_t {
        const absl::StatusOr<int64_t> elapsed = Time(calls);
        if (!elapsed.ok()) failed = elapsed.status();
        return elapsed.value_or(1);
      },
      kSessions, kBlocksPerSide);
  RETURN_IF_ERROR(failed);
  return noise;
}

absl::StatusOr<v1::BoardDevice> DeviceToProbe(const v1::DeviceList& list,
                                              const std::string& kind,
                                              const std::string& selector) {
  for (const v1::BoardDevice& one : list.devices()) {
    if (selector.empty() || one.selector() == selector) return one;
  }
  return absl::UnavailableError(absl::StrCat(
      kind, " device ", selector, " is not there",
      list.errors_size() == 0 ? "" : "; ", absl::StrJoin(list.errors(), "; ")));
}

int64_t ProbeReadBytes(const v1::BoardDevice& device) {
  return std::min(std::max(4 * device.cache_bytes(), kSmallestBuffer),
                  std::min(kLargestBuffer, std::max(device.memory_bytes() / 8,
                                                    kSmallestBuffer)));
}

}  // namespace regatta
