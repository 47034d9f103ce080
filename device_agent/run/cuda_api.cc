#include "device_agent/run/cuda_api.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/shared_library.h"
#include "base/status_macros.h"

namespace regatta::cuda {
namespace {

constexpr char kDriver[] = "libcuda.so.1";

std::string& ChosenDriver() {
  static std::string& path = *new std::string;
  return path;
}

absl::StatusOr<Api> Resolve(SharedLibrary library) {
  Api api;
  api.simulator =
      reinterpret_cast<SimulatorFault*>(library.Symbol(kSimulatorSymbol));
  library.Resolve("cuInit", api.Init);
  library.Resolve("cuDriverGetVersion", api.DriverGetVersion);
  library.Resolve("cuDeviceGetCount", api.DeviceGetCount);
  library.Resolve("cuDeviceGet", api.DeviceGet);
  library.Resolve("cuDeviceGetName", api.DeviceGetName);
  library.Resolve("cuDeviceTotalMem_v2", api.DeviceTotalMem);
  library.Resolve("cuDeviceGetAttribute", api.DeviceGetAttribute);
  library.Resolve("cuDevicePrimaryCtxSetFlags_v2",
                  api.DevicePrimaryCtxSetFlags);
  library.Resolve("cuDevicePrimaryCtxRetain", api.DevicePrimaryCtxRetain);
  library.Resolve("cuCtxSetCurrent", api.CtxSetCurrent);
  library.Resolve("cuCtxSynchronize", api.CtxSynchronize);
  library.Resolve("cuModuleLoadDataEx", api.ModuleLoadDataEx);
  library.Resolve("cuModuleUnload", api.ModuleUnload);
  library.Resolve("cuModuleGetFunction", api.ModuleGetFunction);
  library.Resolve("cuFuncGetAttribute", api.FuncGetAttribute);
  library.Resolve("cuFuncSetAttribute", api.FuncSetAttribute);
  library.Resolve("cuMemAlloc_v2", api.MemAlloc);
  library.Resolve("cuMemAllocManaged", api.MemAllocManaged);
  library.Resolve("cuMemFree_v2", api.MemFree);
  library.Resolve("cuMemcpyHtoD_v2", api.MemcpyHtoD);
  library.Resolve("cuMemcpyDtoH_v2", api.MemcpyDtoH);
  library.Resolve("cuMemsetD8_v2", api.MemsetD8);
  library.Resolve("cuEventCreate", api.EventCreate);
  library.Resolve("cuEventRecord", api.EventRecord);
  library.Resolve("cuEventElapsedTime", api.EventElapsedTime);
  library.Resolve("cuEventDestroy_v2", api.EventDestroy);
  library.Resolve("cuLaunchKernel", api.LaunchKernel);
  library.Resolve("cuGetErrorName", api.GetErrorName);
  library.Resolve("cuGetErrorString", api.GetErrorString);
  if (api.Init == nullptr) {
    return absl::FailedPreconditionError(
        "the library is no CUDA driver: it has no cuInit");
  }
  if (const absl::Status complete = library.Complete(); !complete.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the CUDA driver is too old: ", complete.message(),
                     "; install one of CUDA 12 or later"));
  }
  return api;
}

// What to do about a driver that does not start.
std::string Advice(const Api& api, Result error) {
  if (api.simulator != nullptr) return "";
  return error == kStubLibrary
             ? "; it is a stub for linking: install NVIDIA's driver, or name "
               "its library with --cuda-driver"
             : "; see whether `nvidia-smi` works here";
}

absl::StatusOr<Api> Open() {
  const std::string& chosen = ChosenDriver();
  absl::StatusOr<SharedLibrary> library =
      SharedLibrary::Open(chosen.empty() ? kDriver : chosen);
  if (!library.ok()) {
    if (chosen.empty() && absl::IsNotFound(library.status())) {
      return absl::NotFoundError(
          absl::StrCat("no CUDA driver here: ", library.status().message()));
    }
    return absl::FailedPreconditionError(
        absl::StrCat("the CUDA driver", chosen.empty() ? "" : " that was named",
                     ": ", library.status().message()));
  }
  ASSIGN_OR_RETURN(Api api, Resolve(*std::move(library)));
  const Result error = api.Init(0);
  if (error == kSuccess) return api;
  const std::string said =
      absl::StrCat("the CUDA driver does not start: ", api.ErrorText(error));
  return error == kNoDevice ? absl::NotFoundError(said)
                            : absl::UnavailableError(said + Advice(api, error));
}

}  // namespace

void UseDriver(std::string path) { ChosenDriver() = std::move(path); }

absl::StatusOr<const Api*> Api::Load() {
  static const absl::StatusOr<Api>* const api = new absl::StatusOr<Api>(Open());
  if (!api->ok()) return api->status();
  return &**api;
}

std::string Api::ErrorText(Result error) const {
  const char* name = nullptr;
  const char* description = nullptr;
  GetErrorName(error, &name);
  GetErrorString(error, &description);
  std::string text =
      absl::StrCat(name == nullptr ? "CUDA error" : name, " (", error, ")");
  if (description != nullptr) absl::StrAppend(&text, ": ", description);
  if (simulator != nullptr && *simulator() != '\0') {
    absl::StrAppend(&text, "; the simulator says: ", simulator());
  }
  return text;
}

}  // namespace regatta::cuda
