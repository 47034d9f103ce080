// CUDA's driver library, opened at run time: nothing of CUDA is linked, so run
// workers start where there is none. Functions are found by the names that the
// library exports, the versioned ones of CUDA 12 and later.
//
// Thread safety: as the driver's own functions; Load may be called from any
// thread.
#ifndef REGATTA_DEVICE_AGENT_RUN_CUDA_API_H_
#define REGATTA_DEVICE_AGENT_RUN_CUDA_API_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "device_agent/run/cuda_abi.h"

namespace regatta::cuda {

// Which file Load opens instead of libcuda.so.1. Before the first Load.
void UseDriver(std::string path);

struct Api {
  // Opens and starts the driver the first time; stays so for this process.
  // NotFound: no driver here, or one without any device. FailedPrecondition,
  // with the reason: it cannot be loaded, lacks a function (it is named), or
  // UseDriver named a file that is not there. Unavailable, with what the driver
  // said and what to do: it does not start.
  static absl::StatusOr<const Api*> Load();

  // Null for a driver of real devices.
  SimulatorFault* simulator = nullptr;

  Result (*Init)(unsigned flags) = nullptr;
  Result (*DriverGetVersion)(int* version) = nullptr;
  Result (*DeviceGetCount)(int* count) = nullptr;
  Result (*DeviceGet)(Device* device, int ordinal) = nullptr;
  Result (*DeviceGetName)(char* name, int bytes, Device device) = nullptr;
  Result (*DeviceTotalMem)(size_t* bytes, Device device) = nullptr;
  Result (*DeviceGetAttribute)(int* value, int attribute,
                               Device device) = nullptr;
  Result (*DevicePrimaryCtxSetFlags)(Device device, unsigned flags) = nullptr;
  Result (*DevicePrimaryCtxRetain)(Context* context, Device device) = nullptr;
  Result (*CtxSetCurrent)(Context context) = nullptr;
  Result (*CtxSynchronize)() = nullptr;
  Result (*ModuleLoadDataEx)(CodeModule* module, const void* image,
                             unsigned options, int* names,
                             void** values) = nullptr;
  Result (*ModuleUnload)(CodeModule module) = nullptr;
  Result (*ModuleGetFunction)(Function* function, CodeModule module,
                              const char* name) = nullptr;
  Result (*FuncGetAttribute)(int* value, int attribute,
                             Function function) = nullptr;
  Result (*FuncSetAttribute)(Function function, int attribute,
                             int value) = nullptr;
  Result (*MemAlloc)(Address* address, size_t bytes) = nullptr;
  Result (*MemAllocManaged)(Address* address, size_t bytes,
                            unsigned flags) = nullptr;
  Result (*MemFree)(Address address) = nullptr;
  Result (*MemcpyHtoD)(Address to, const void* from, size_t bytes) = nullptr;
  Result (*MemcpyDtoH)(void* to, Address from, size_t bytes) = nullptr;
  Result (*MemsetD8)(Address to, unsigned char value, size_t bytes) = nullptr;
  Result (*EventCreate)(Event* event, unsigned flags) = nullptr;
  Result (*EventRecord)(Event event, Stream stream) = nullptr;
  Result (*EventElapsedTime)(float* milliseconds, Event from,
                             Event to) = nullptr;
  Result (*EventDestroy)(Event event) = nullptr;
  Result (*LaunchKernel)(Function function, unsigned grid_x, unsigned grid_y,
                         unsigned grid_z, unsigned block_x, unsigned block_y,
                         unsigned block_z, unsigned shared_bytes, Stream stream,
                         void** arguments, void** extra) = nullptr;
  Result (*GetErrorName)(Result error, const char** name) = nullptr;
  Result (*GetErrorString)(Result error, const char** text) = nullptr;

  // "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access ...", followed
  // by what a simulator knows of it.
  std::string ErrorText(Result error) const;
};

}  // namespace regatta::cuda

#endif  // REGATTA_DEVICE_AGENT_RUN_CUDA_API_H_
