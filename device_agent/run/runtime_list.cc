#include "device_agent/run/runtime_list.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "device_agent/run/cuda_device.h"
#include "device_agent/run/cuda_probe.h"
#include "device_agent/run/cuda_runtime.h"
#include "device_agent/run/host_probe.h"
#include "device_agent/run/host_runtime.h"
#include "device_agent/run/opencl_device.h"
#include "device_agent/run/opencl_probe.h"
#include "device_agent/run/opencl_runtime.h"

namespace regatta {
namespace {

constexpr RuntimeKind kKinds[] = {
    {"cpu", CreateHostRuntime, ListHostProcessors, ProbeHostProcessors,
     nullptr},
    {"opencl", CreateOpenClRuntime, ListOpenClDevices, ProbeOpenClDevice,
     nullptr},
    {"cuda", CreateCudaRuntime, ListCudaDevices, ProbeCudaDevice,
     PrepareCudaDevice},
};

const RuntimeKind* FindKind(std::string_view kind) {
  for (const RuntimeKind& known : kKinds) {
    if (known.kind == kind) return &known;
  }
  return nullptr;
}

}  // namespace

absl::Span<const RuntimeKind> RuntimeKinds() { return kKinds; }

RuntimeOrFailure CreateRuntime(const Module& module,
                               const RuntimeOptions& options) {
  const std::string kind = module.target.substr(0, module.target.find(','));
  const RuntimeKind* known = FindKind(kind);
  if (known == nullptr) {
    return {nullptr,
            Failed(v1::OUTCOME_DEVICE_FAULT,
                   absl::StrCat("run workers serve no target of kind ", kind))};
  }
  return known->create(module, options);
}

absl::StatusOr<v1::ProbeReport> ProbeDevice(std::string_view kind,
                                            const std::string& device) {
  const RuntimeKind* known = FindKind(kind);
  if (known == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "run workers probe no devices of kind ", std::string(kind)));
  }
  return known->probe(device);
}

absl::Status PrepareDevice(std::string_view kind, const std::string& device) {
  const RuntimeKind* known = FindKind(kind);
  if (known == nullptr || known->prepare == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "run workers prepare no devices of kind ", std::string(kind)));
  }
  return known->prepare(device);
}

v1::DeviceList ListDevices(const std::vector<std::string>& kinds) {
  v1::DeviceList list;
  for (const std::string& kind : kinds) {
    const RuntimeKind* known = FindKind(kind);
    if (known == nullptr) {
      list.add_errors(absl::StrCat(kind, ": run workers list no such devices"));
      continue;
    }
    const auto devices = known->list();
    if (!devices.ok()) {
      list.add_errors(absl::StrCat(kind, ": ", devices.status().message()));
      continue;
    }
    list.mutable_devices()->MergeFrom(devices->devices());
    for (const std::string& error : devices->errors()) {
      list.add_errors(absl::StrCat(kind, ": ", error));
    }
  }
  return list;
}

}  // namespace regatta
