#include "device_agent/run/cuda_device.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta {
namespace cuda {
namespace {

constexpr int kMaxNameBytes = 256;
constexpr int kPerMajor = 1000;  // of a driver's version

absl::Status Error(const Api& api, const std::string& what, Result error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", api.ErrorText(error)));
}

int AttributeOf(const Api& api, DeviceAttribute attribute, Device device) {
  int value = 0;
  return api.DeviceGetAttribute(&value, attribute, device) == kSuccess ? value
                                                                       : 0;
}

bool SharesMemory(const Api& api, Device device) {
  return AttributeOf(api, kIntegrated, device) != 0 &&
         AttributeOf(api, kManagedMemory, device) != 0;
}

int Architecture(const Api& api, Device device) {
  return 10 * AttributeOf(api, kCapabilityMajor, device) +
         AttributeOf(api, kCapabilityMinor, device);
}

absl::StatusOr<int> CountDevices(const Api& api) {
  int count = 0;
  const Result error = api.DeviceGetCount(&count);
  if (error != kSuccess) return Error(api, "counting CUDA devices", error);
  return count;
}

// 13000 for CUDA 13.0.
absl::StatusOr<int> DriverVersion(const Api& api) {
  constexpr char kWhat[] = "asking for the CUDA driver's version";
  int version = 0;
  const Result error = api.DriverGetVersion(&version);
  if (error != kSuccess) return Error(api, kWhat, error);
  if (version < kPerMajor) {
    return absl::UnavailableError(absl::StrCat(kWhat, ": it says ", version));
  }
  return version;
}

absl::StatusOr<v1::BoardDevice> Describe(const Api& api, int ordinal,
                                         int driver_version) {
  Device device = 0;
  const std::string what = absl::StrCat("CUDA device ", ordinal);
  Result error = api.DeviceGet(&device, ordinal);
  char name[kMaxNameBytes] = "";
  if (error == kSuccess) {
    error = api.DeviceGetName(name, kMaxNameBytes - 1, device);
  }
  size_t memory_bytes = 0;
  if (error == kSuccess) error = api.DeviceTotalMem(&memory_bytes, device);
  if (error != kSuccess) return Error(api, what, error);
  const auto number = [&](DeviceAttribute attribute) {
    return AttributeOf(api, attribute, device);
  };
  v1::BoardDevice facts;
  facts.set_kind("cuda");
  facts.set_selector(absl::StrCat(ordinal));
  facts.set_platform("CUDA");
  facts.set_name(std::string(absl::StripAsciiWhitespace(name)));
  facts.set_driver_version(absl::StrCat("driver of CUDA ",
                                        driver_version / kPerMajor, ".",
                                        driver_version % kPerMajor / 10));
  facts.set_driver_major(driver_version / kPerMajor);
  facts.set_compute_units(number(kProcessors));
  facts.set_memory_bytes(static_cast<int64_t>(memory_bytes));
  facts.set_cache_bytes(number(kL2Bytes));
  facts.set_max_group(number(kMaxThreadsPerBlock));
  facts.set_local_bytes(number(kMaxSharedPerBlockOptin));
  facts.set_subgroup(number(kWarpSize));
  facts.set_architecture(absl::StrCat("sm_", Architecture(api, device)));
  facts.set_clock_resolution_ns(kClockResolutionNs);
  facts.set_simulated(api.simulator != nullptr);
  return facts;
}

absl::StatusOr<Gpu> OpenDevice(const std::string& selector) {
  absl::StatusOr<const Api*> loaded = Api::Load();
  RETURN_IF_ERROR(loaded.status());
  Gpu gpu;
  gpu.api = *loaded;
  const Api& api = *gpu.api;
  ASSIGN_OR_RETURN(const int count, CountDevices(api));
  int ordinal = 0;
  if ((!selector.empty() && !absl::SimpleAtoi(selector, &ordinal)) ||
      ordinal < 0 || ordinal >= count) {
    return absl::NotFoundError(absl::StrCat(
        "CUDA device ", selector, " is not there; ", count, " others are"));
  }
  gpu.selector = selector;
  Result error = api.DeviceGet(&gpu.device, ordinal);
  // The processor is left alone while it waits.
  if (error == kSuccess) {
    error = api.DevicePrimaryCtxSetFlags(gpu.device, kScheduleBlockingSync);
  }
  Context context = nullptr;
  if (error == kSuccess) {
    error = api.DevicePrimaryCtxRetain(&context, gpu.device);
  }
  if (error == kSuccess) error = api.CtxSetCurrent(context);
  if (error != kSuccess) {
    return Error(api, absl::StrCat("a context on CUDA device ", ordinal),
                 error);
  }
  gpu.architecture = Architecture(api, gpu.device);
  gpu.shares_memory = SharesMemory(api, gpu.device);
  return gpu;
}

}  // namespace

absl::StatusOr<const Gpu*> Gpu::Open(const std::string& selector) {
  static std::optional<Gpu>& opened = *new std::optional<Gpu>;
  if (!opened.has_value()) {
    ASSIGN_OR_RETURN(opened, OpenDevice(selector));
  }
  if (opened->selector != selector) {
    return absl::UnavailableError(
        absl::StrCat("this worker's context is on CUDA device ",
                     opened->selector, ", not on ", selector));
  }
  return &*opened;
}

int Gpu::Attribute(DeviceAttribute attribute) const {
  return AttributeOf(*api, attribute, device);
}

}  // namespace cuda

absl::StatusOr<v1::DeviceList> ListCudaDevices() {
  v1::DeviceList list;
  const absl::StatusOr<const cuda::Api*> api = cuda::Api::Load();
  if (absl::IsNotFound(api.status())) return list;
  RETURN_IF_ERROR(api.status());
  ASSIGN_OR_RETURN(const int version, cuda::DriverVersion(**api));
  ASSIGN_OR_RETURN(const int count, cuda::CountDevices(**api));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    absl::StatusOr<v1::BoardDevice> device =
        cuda::Describe(**api, ordinal, version);
    if (device.ok()) {
      *list.add_devices() = *std::move(device);
    } else {
      list.add_errors(std::string(device.status().message()));
    }
  }
  return list;
}

absl::Status PrepareCudaDevice(const std::string& selector) {
  ASSIGN_OR_RETURN(const cuda::Gpu* gpu, cuda::Gpu::Open(selector));
  const cuda::Result error = gpu->api->CtxSynchronize();
  if (error == cuda::kSuccess) return absl::OkStatus();
  return cuda::Error(*gpu->api, "the context is not usable", error);
}

}  // namespace regatta
