// The functions of CUDA's driver library that agents and launchers use, over
// simulated GPUs: libregatta-cuda-sim.so. Which GPUs there are: gpu_list.h.
// Beside them it exports `regatta_cuda_simulator`, by which it is told from a
// real driver.
//
// As in a driver, every thread has a stack of contexts, of which the last is
// current. Calls from several threads are taken one after the other.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device_agent/cuda_sim/gpu_list.h"
#include "device_agent/cuda_sim/simulated_context.h"
#include "device_agent/run/cuda_abi.h"

namespace regatta::cuda_sim {
namespace {

using cuda::Result;

// What the newest driver whose PTX the simulator reads would say.
constexpr int kDriverVersion = 13000;
constexpr int kKilo = 1000;

struct Driver {
  std::mutex mutex;
  std::vector<std::unique_ptr<SimulatedContext>> devices;
  std::string fault;  // of starting, and what was asked for last
};

Driver& TheDriver() {
  static Driver& driver = *new Driver;
  return driver;
}

std::vector<SimulatedContext*>& ContextsOfThread() {
  thread_local std::vector<SimulatedContext*> contexts;
  return contexts;
}

struct EventTime {
  int64_t picoseconds = -1;  // not recorded
};

// The work of one function: `work(context)` under the lock.
template <typename Work>
Result InContext(Work work) {
  Driver& driver = TheDriver();
  std::lock_guard<std::mutex> lock(driver.mutex);
  if (driver.devices.empty()) return cuda::kNotInitialized;
  const auto& contexts = ContextsOfThread();
  if (contexts.empty() || contexts.back() == nullptr) {
    return cuda::kInvalidContext;
  }
  SimulatedContext& current = *contexts.back();
  current.BeginCall();
  const Result result = work(current);
  driver.fault = result == cuda::kSuccess ? "" : current.fault();
  return result;
}

// As InContext, after everything that was launched has ended.
template <typename Work>
Result AfterLaunches(Work work) {
  bool hung = false;
  const Result result = InContext([&](SimulatedContext& context) {
    hung = context.hung();
    return hung ? cuda::kSuccess : work(context);
  });
  while (hung) pause();
  return result;
}

Result OfDevice(int device, SimulatedContext** context) {
  Driver& driver = TheDriver();
  if (driver.devices.empty()) return cuda::kNotInitialized;
  if (device < 0 || device >= static_cast<int>(driver.devices.size())) {
    return cuda::kInvalidDevice;
  }
  *context = driver.devices[static_cast<size_t>(device)].get();
  return cuda::kSuccess;
}

int AttributeOf(const Gpu& gpu, int attribute) {
  const ptxsim::GpuArchitecture& architecture = gpu.model.architecture;
  switch (attribute) {
    case cuda::kMaxThreadsPerBlock:
      return 1024;
    case cuda::kMaxSharedPerBlock:
      return kPlainShared;
    case cuda::kWarpSize:
      return 32;
    case cuda::kClockKilohertz:
      return static_cast<int>(gpu.model.clock_hz / kKilo);
    case cuda::kProcessors:
      return gpu.model.processors;
    case cuda::kIntegrated:
      return gpu.integrated ? 1 : 0;
    case cuda::kL2Bytes:
      return gpu.l2_bytes;
    case cuda::kCapabilityMajor:
      return architecture.sm / 10;
    case cuda::kCapabilityMinor:
      return architecture.sm % 10;
    case cuda::kManagedMemory:
      return 1;
    case cuda::kMaxSharedPerBlockOptin:
      return static_cast<int>(architecture.max_shared_per_block);
    default:
      return -1;
  }
}

struct ErrorWords {
  Result error;
  const char* name;
  const char* text;
};
// Names and meanings after the manual.
constexpr ErrorWords kErrors[] = {
    {cuda::kSuccess, "CUDA_SUCCESS", "no error"},
    {cuda::kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {cuda::kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {cuda::kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED",
     "initialization error"},
    {cuda::kNoDevice, "CUDA_ERROR_NO_DEVICE",
     "no CUDA-capable device is detected"},
    {cuda::kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE",
     "invalid device ordinal"},
    {cuda::kInvalidImage, "CUDA_ERROR_INVALID_IMAGE",
     "device kernel image is invalid"},
    {cuda::kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT",
     "invalid device context"},
    {cuda::kNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {cuda::kInvalidPtx, "CUDA_ERROR_INVALID_PTX",
     "a PTX JIT compilation failed"},
    {cuda::kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE",
     "invalid resource handle"},
    {cuda::kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {cuda::kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {cuda::kLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {cuda::kMisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS",
     "misaligned address"},
    {cuda::kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED",
     "unspecified launch failure"},
};

const ErrorWords* WordsOf(Result error) {
  for (const ErrorWords& words : kErrors) {
    if (words.error == error) return &words;
  }
  return nullptr;
}

}  // namespace
}  // namespace regatta::cuda_sim

// The driver's names, as its library exports them.
#define REGATTA_EXPORT extern "C" __attribute__((visibility("default")))

using regatta::cuda::Result;
namespace cuda = regatta::cuda;
namespace sim = regatta::cuda_sim;
using sim::AfterLaunches;
using sim::InContext;
using sim::SimulatedContext;

REGATTA_EXPORT const char* regatta_cuda_simulator() {
  return sim::TheDriver().fault.c_str();
}

REGATTA_EXPORT Result cuInit(unsigned flags) {
  if (flags != 0) return cuda::kInvalidValue;
  sim::Driver& driver = sim::TheDriver();
  std::lock_guard<std::mutex> lock(driver.mutex);
  if (!driver.devices.empty()) return cuda::kSuccess;
  const char* wanted = std::getenv(sim::kGpusVariable);
  auto gpus = sim::ChooseGpus(wanted == nullptr ? "sm_80" : wanted);
  if (!gpus.ok()) {
    driver.fault = std::string(gpus.status().message());
    return cuda::kInvalidDevice;
  }
  for (sim::Gpu& gpu : *gpus) {
    driver.devices.push_back(
        std::make_unique<SimulatedContext>(std::move(gpu)));
  }
  return cuda::kSuccess;
}

REGATTA_EXPORT Result cuDriverGetVersion(int* version) {
  *version = sim::kDriverVersion;
  return cuda::kSuccess;
}

REGATTA_EXPORT Result cuDeviceGetCount(int* count) {
  *count = static_cast<int>(sim::TheDriver().devices.size());
  return *count == 0 ? cuda::kNotInitialized : cuda::kSuccess;
}

REGATTA_EXPORT Result cuDeviceGet(int* device, int ordinal) {
  SimulatedContext* context = nullptr;
  *device = ordinal;
  return sim::OfDevice(ordinal, &context);
}

REGATTA_EXPORT Result cuDeviceGetName(char* name, int bytes, int device) {
  SimulatedContext* context = nullptr;
  const Result result = sim::OfDevice(device, &context);
  if (result != cuda::kSuccess) return result;
  std::strncpy(name, context->gpu().name.c_str(), static_cast<size_t>(bytes));
  return cuda::kSuccess;
}

REGATTA_EXPORT Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
  SimulatedContext* context = nullptr;
  *bytes = sim::kMemoryBytes;
  return sim::OfDevice(device, &context);
}

REGATTA_EXPORT Result cuDeviceGetAttribute(int* value, int attribute,
                                           int device) {
  SimulatedContext* context = nullptr;
  const Result result = sim::OfDevice(device, &context);
  if (result != cuda::kSuccess) return result;
  *value = sim::AttributeOf(context->gpu(), attribute);
  return *value < 0 ? cuda::kInvalidValue : cuda::kSuccess;
}

REGATTA_EXPORT Result cuDevicePrimaryCtxSetFlags_v2(int device, unsigned) {
  SimulatedContext* context = nullptr;
  return sim::OfDevice(device, &context);
}

REGATTA_EXPORT Result cuDevicePrimaryCtxRetain(cuda::Context* handle,
                                               int device) {
  SimulatedContext* context = nullptr;
  const Result result = sim::OfDevice(device, &context);
  *handle = reinterpret_cast<cuda::Context>(context);
  return result;
}

// Contexts stay until the process ends, whoever holds them.
REGATTA_EXPORT Result cuDevicePrimaryCtxRelease_v2(int device) {
  SimulatedContext* context = nullptr;
  return sim::OfDevice(device, &context);
}

REGATTA_EXPORT Result cuCtxSetCurrent(cuda::Context handle) {
  auto& contexts = sim::ContextsOfThread();
  if (!contexts.empty()) contexts.pop_back();
  contexts.push_back(reinterpret_cast<SimulatedContext*>(handle));
  return cuda::kSuccess;
}

REGATTA_EXPORT Result cuCtxPushCurrent_v2(cuda::Context handle) {
  if (handle == nullptr) return cuda::kInvalidContext;
  sim::ContextsOfThread().push_back(
      reinterpret_cast<SimulatedContext*>(handle));
  return cuda::kSuccess;
}

REGATTA_EXPORT Result cuCtxPopCurrent_v2(cuda::Context* handle) {
  auto& contexts = sim::ContextsOfThread();
  if (contexts.empty()) return cuda::kInvalidContext;
  *handle = reinterpret_cast<cuda::Context>(contexts.back());
  contexts.pop_back();
  return cuda::kSuccess;
}

REGATTA_EXPORT Result cuCtxSynchronize() {
  return AfterLaunches(
      [](SimulatedContext& context) { return context.error(); });
}

REGATTA_EXPORT Result cuModuleLoadDataEx(cuda::CodeModule* module,
                                         const void* image, unsigned options,
                                         int* names, void** values) {
  return InContext([&](SimulatedContext& context) {
    sim::CodeModule* loaded = nullptr;
    std::string log;
    const Result result = context.LoadCode(image, &loaded, &log);
    *module = reinterpret_cast<cuda::CodeModule>(loaded);
    char* buffer = nullptr;
    size_t bytes = 0;
    for (unsigned i = 0; i < options; ++i) {
      if (names[i] == cuda::kJitErrorLog) {
        buffer = static_cast<char*>(values[i]);
      } else if (names[i] == cuda::kJitErrorLogBytes) {
        bytes = reinterpret_cast<uintptr_t>(values[i]);
      }
    }
    if (buffer != nullptr && bytes > 0) {
      const size_t count = std::min(bytes - 1, log.size());
      std::memcpy(buffer, log.data(), count);
      buffer[count] = '\0';
    }
    return result;
  });
}

REGATTA_EXPORT Result cuModuleLoadData(cuda::CodeModule* module,
                                       const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

REGATTA_EXPORT Result cuModuleUnload(cuda::CodeModule module) {
  return InContext([&](SimulatedContext& context) {
    return context.Unload(reinterpret_cast<sim::CodeModule*>(module));
  });
}

REGATTA_EXPORT Result cuModuleGetFunction(cuda::Function* function,
                                          cuda::CodeModule module,
                                          const char* name) {
  return InContext([&](SimulatedContext& context) {
    if (context.error() != cuda::kSuccess) return context.error();
    sim::Kernel* kernel =
        reinterpret_cast<sim::CodeModule*>(module)->Find(name);
    *function = reinterpret_cast<cuda::Function>(kernel);
    return kernel == nullptr ? cuda::kNotFound : cuda::kSuccess;
  });
}

REGATTA_EXPORT Result cuFuncGetAttribute(int* value, int attribute,
                                         cuda::Function function) {
  const auto* kernel = reinterpret_cast<sim::Kernel*>(function);
  switch (attribute) {
    case cuda::kFunctionMaxThreads:
      *value = kernel->max_threads;
      return cuda::kSuccess;
    case cuda::kFunctionStaticShared:
      *value = static_cast<int>(kernel->entry->static_shared_bytes);
      return cuda::kSuccess;
    case cuda::kFunctionLocalBytes:
      *value = static_cast<int>(kernel->local_bytes);
      return cuda::kSuccess;
    case cuda::kFunctionRegisters:
      *value = kernel->registers;
      return cuda::kSuccess;
    case cuda::kFunctionMaxDynamicShared:
      *value = static_cast<int>(kernel->max_dynamic_shared);
      return cuda::kSuccess;
    default:
      return cuda::kInvalidValue;
  }
}

REGATTA_EXPORT Result cuFuncSetAttribute(cuda::Function function, int attribute,
                                         int value) {
  return InContext([&](SimulatedContext& context) {
    if (attribute != cuda::kFunctionMaxDynamicShared) {
      return cuda::kInvalidValue;
    }
    return context.Allow(reinterpret_cast<sim::Kernel*>(function), value);
  });
}

REGATTA_EXPORT Result cuMemAlloc_v2(cuda::Address* address, size_t bytes) {
  return InContext([&](SimulatedContext& context) {
    return context.Allocate(bytes, /*managed=*/false, address);
  });
}

REGATTA_EXPORT Result cuMemAllocManaged(cuda::Address* address, size_t bytes,
                                        unsigned) {
  return InContext([&](SimulatedContext& context) {
    return context.Allocate(bytes, /*managed=*/true, address);
  });
}

REGATTA_EXPORT Result cuMemFree_v2(cuda::Address address) {
  return AfterLaunches(
      [&](SimulatedContext& context) { return context.Free(address); });
}

REGATTA_EXPORT Result cuMemcpyHtoD_v2(cuda::Address to, const void* from,
                                      size_t bytes) {
  return AfterLaunches([&](SimulatedContext& context) {
    return context.Write(to, from, bytes);
  });
}

REGATTA_EXPORT Result cuMemcpyDtoH_v2(void* to, cuda::Address from,
                                      size_t bytes) {
  return AfterLaunches(
      [&](SimulatedContext& context) { return context.Read(from, to, bytes); });
}

REGATTA_EXPORT Result cuMemsetD8_v2(cuda::Address to, unsigned char value,
                                    size_t bytes) {
  return AfterLaunches([&](SimulatedContext& context) {
    return context.Fill(to, value, bytes);
  });
}

REGATTA_EXPORT Result cuEventCreate(cuda::Event* event, unsigned) {
  *event = reinterpret_cast<cuda::Event>(new sim::EventTime);
  return cuda::kSuccess;
}

REGATTA_EXPORT Result cuEventDestroy_v2(cuda::Event event) {
  delete reinterpret_cast<sim::EventTime*>(event);
  return cuda::kSuccess;
}

REGATTA_EXPORT Result cuEventRecord(cuda::Event event, cuda::Stream) {
  return InContext([&](SimulatedContext& context) {
    reinterpret_cast<sim::EventTime*>(event)->picoseconds =
        context.picoseconds();
    return context.error();
  });
}

REGATTA_EXPORT Result cuEventElapsedTime(float* milliseconds, cuda::Event from,
                                         cuda::Event to) {
  const auto start = reinterpret_cast<sim::EventTime*>(from)->picoseconds;
  const auto end = reinterpret_cast<sim::EventTime*>(to)->picoseconds;
  if (start < 0 || end < 0) return cuda::kInvalidHandle;
  *milliseconds = static_cast<float>(static_cast<double>(end - start) / 1e9);
  return InContext([](SimulatedContext& context) { return context.error(); });
}

REGATTA_EXPORT Result cuLaunchKernel(cuda::Function function, unsigned grid_x,
                                     unsigned grid_y, unsigned grid_z,
                                     unsigned block_x, unsigned block_y,
                                     unsigned block_z, unsigned shared_bytes,
                                     cuda::Stream, void** arguments, void**) {
  return InContext([&](SimulatedContext& context) {
    return context.Launch(*reinterpret_cast<sim::Kernel*>(function),
                          {.grid = {grid_x, grid_y, grid_z},
                           .block = {block_x, block_y, block_z},
                           .shared_bytes = shared_bytes},
                          arguments);
  });
}

REGATTA_EXPORT Result cuGetErrorName(Result error, const char** name) {
  const sim::ErrorWords* words = sim::WordsOf(error);
  *name = words == nullptr ? nullptr : words->name;
  return words == nullptr ? cuda::kInvalidValue : cuda::kSuccess;
}

REGATTA_EXPORT Result cuGetErrorString(Result error, const char** text) {
  const sim::ErrorWords* words = sim::WordsOf(error);
  *text = words == nullptr ? nullptr : words->text;
  return words == nullptr ? cuda::kInvalidValue : cuda::kSuccess;
}
