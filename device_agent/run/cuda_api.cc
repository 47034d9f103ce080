#include "device_agent/run/cuda_api.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta::cuda {
namespace {

constexpr char kDriver[] = "libcuda.so.1";

std::string& ChosenDriver() {
  static std::string& path = *new std::string;
  return path;
}

struct Resolver {
  void* library;
  std::string missing;

  template <typename Pointer>
  void operator()(const char* name, Pointer& function) {
    function = reinterpret_cast<Pointer>(dlsym(library, name));
    if (function == nullptr) absl::StrAppend(&missing, " ", name);
  }
};

absl::StatusOr<Api> Resolve(void* library) {
  Api api;
  api.simulator =
      reinterpret_cast<SimulatorFault*>(dlsym(library, kSimulatorSymbol));
  Resolver resolve{library, ""};
  resolve("cuInit", api.Init);
  resolve("cuDriverGetVersion", api.DriverGetVersion);
  resolve("cuDeviceGetCount", api.DeviceGetCount);
  resolve("cuDeviceGet", api.DeviceGet);
  resolve("cuDeviceGetName", api.DeviceGetName);
  resolve("cuDeviceTotalMem_v2", api.DeviceTotalMem);
  resolve("cuDeviceGetAttribute", api.DeviceGetAttribute);
  resolve("cuDevicePrimaryCtxSetFlags_v2", api.DevicePrimaryCtxSetFlags);
  resolve("cuDevicePrimaryCtxRetain", api.DevicePrimaryCtxRetain);
  resolve("cuCtxSetCurrent", api.CtxSetCurrent);
  resolve("cuCtxSynchronize", api.CtxSynchronize);
  resolve("cuModuleLoadDataEx", api.ModuleLoadDataEx);
  resolve("cuModuleUnload", api.ModuleUnload);
  resolve("cuModuleGetFunction", api.ModuleGetFunction);
  resolve("cuFuncGetAttribute", api.FuncGetAttribute);
  resolve("cuFuncSetAttribute", api.FuncSetAttribute);
  resolve("cuMemAlloc_v2", api.MemAlloc);
  resolve("cuMemAllocManaged", api.MemAllocManaged);
  resolve("cuMemFree_v2", api.MemFree);
  resolve("cuMemcpyHtoD_v2", api.MemcpyHtoD);
  resolve("cuMemcpyDtoH_v2", api.MemcpyDtoH);
  resolve("cuMemsetD8_v2", api.MemsetD8);
  resolve("cuEventCreate", api.EventCreate);
  resolve("cuEventRecord", api.EventRecord);
  resolve("cuEventElapsedTime", api.EventElapsedTime);
  resolve("cuEventDestroy_v2", api.EventDestroy);
  resolve("cuLaunchKernel", api.LaunchKernel);
  resolve("cuGetErrorName", api.GetErrorName);
  resolve("cuGetErrorString", api.GetErrorString);
  if (!resolve.missing.empty()) {
    return absl::UnavailableError(
        absl::StrCat("the CUDA driver is too old: it lacks", resolve.missing,
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
  // Never closed: drivers leave threads behind.
  void* library =
      dlopen(chosen.empty() ? kDriver : chosen.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return chosen.empty() ? absl::NotFoundError(absl::StrCat(
                                "no CUDA driver here: ", dlerror()))
                          : absl::UnavailableError(absl::StrCat(
                                "the CUDA driver that was named: ", dlerror()));
  }
  ASSIGN_OR_RETURN(Api api, Resolve(library));
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
