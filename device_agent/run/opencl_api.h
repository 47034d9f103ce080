// The part of OpenCL 1.2 that run workers use, declared here and resolved at
// run time from the system's ICD loader: a board without OpenCL runs the same
// program, and building it needs no OpenCL package. Names, values and
// signatures are those of the Khronos specification (OpenCL 1.2, chapters 4 and
// 5), less their prefix.
//
// Thread safety: that of OpenCL, all functions but SetKernelArg on one kernel.
#ifndef REGATTA_DEVICE_AGENT_RUN_OPENCL_API_H_
#define REGATTA_DEVICE_AGENT_RUN_OPENCL_API_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace regatta::opencl {

using Platform = struct PlatformObject*;
using Device = struct DeviceObject*;
using Context = struct ContextObject*;
using Queue = struct QueueObject*;
using Program = struct ProgramObject*;
using Kernel = struct KernelObject*;
using Memory = struct MemoryObject*;
using Event = struct EventObject*;

// Error codes.
inline constexpr int32_t kSuccess = 0;
inline constexpr int32_t kDeviceNotFound = -1;
inline constexpr int32_t kDeviceNotAvailable = -2;
inline constexpr int32_t kMemObjectAllocationFailure = -4;
inline constexpr int32_t kOutOfResources = -5;
inline constexpr int32_t kOutOfHostMemory = -6;
inline constexpr int32_t kImageFormatNotSupported = -10;
inline constexpr int32_t kBuildProgramFailure = -11;
inline constexpr int32_t kExecStatusErrorForEventsInWaitList = -14;
inline constexpr int32_t kInvalidCommandQueue = -36;
inline constexpr int32_t kInvalidImageSize = -40;
inline constexpr int32_t kInvalidBuildOptions = -43;
inline constexpr int32_t kInvalidKernelName = -46;
inline constexpr int32_t kInvalidArgIndex = -49;
inline constexpr int32_t kInvalidKernelArgs = -52;
inline constexpr int32_t kInvalidWorkGroupSize = -54;
inline constexpr int32_t kInvalidWorkItemSize = -55;
inline constexpr int32_t kInvalidBufferSize = -61;
inline constexpr int32_t kInvalidGlobalWorkSize = -63;
// Of the ICD loader's extension cl_khr_icd: it found no driver.
inline constexpr int32_t kPlatformNotFound = -1001;
// Of NVIDIA's driver: a kernel read or wrote where nothing is.
inline constexpr int32_t kIllegalAccessNv = -9999;

// Kinds of devices.
inline constexpr uint64_t kDeviceTypeCpu = 1 << 1;
inline constexpr uint64_t kDeviceTypeAll = 0xFFFFFFFF;

// Questions about a platform.
inline constexpr uint32_t kPlatformVersion = 0x0901;
inline constexpr uint32_t kPlatformName = 0x0902;

// Questions about a device.
inline constexpr uint32_t kDeviceType = 0x1000;
inline constexpr uint32_t kDeviceMaxComputeUnits = 0x1002;
inline constexpr uint32_t kDeviceMaxWorkGroupSize = 0x1004;
inline constexpr uint32_t kDeviceImage2dMaxWidth = 0x1011;   // pixels
inline constexpr uint32_t kDeviceImage2dMaxHeight = 0x1012;  // pixels
inline constexpr uint32_t kDeviceImageSupport = 0x1016;
inline constexpr uint32_t kDeviceMemBaseAddrAlign = 0x1019;  // bits
inline constexpr uint32_t kDeviceGlobalMemCacheSize = 0x101E;
inline constexpr uint32_t kDeviceGlobalMemSize = 0x101F;
inline constexpr uint32_t kDeviceLocalMemSize = 0x1023;
inline constexpr uint32_t kDeviceProfilingTimerResolution = 0x1025;  // ns
inline constexpr uint32_t kDeviceAvailable = 0x1027;
inline constexpr uint32_t kDeviceCompilerAvailable = 0x1028;
inline constexpr uint32_t kDeviceName = 0x102B;
inline constexpr uint32_t kDeviceVendor = 0x102C;
inline constexpr uint32_t kDriverVersion = 0x102D;
inline constexpr uint32_t kDeviceVersion = 0x102F;
inline constexpr uint32_t kDeviceExtensions = 0x1030;
inline constexpr uint32_t kDeviceNativeVectorWidthFloat = 0x103A;
// Of the extensions cl_nv_device_attribute_query,
// cl_amd_device_attribute_query.
inline constexpr uint32_t kDeviceWarpSizeNv = 0x4003;
inline constexpr uint32_t kDeviceWavefrontWidthAmd = 0x4043;

// Other questions and flags.
inline constexpr uint64_t kQueueProfilingEnable = 1 << 1;
inline constexpr uint64_t kMemReadWrite = 1 << 0;
inline constexpr uint32_t kBufferCreateTypeRegion = 0x1220;
inline constexpr uint32_t kProgramBuildLog = 0x1183;
inline constexpr uint32_t kKernelWorkGroupSize = 0x11B0;
inline constexpr uint32_t kKernelLocalMemSize = 0x11B2;
inline constexpr uint32_t kKernelPreferredWorkGroupSizeMultiple = 0x11B3;
inline constexpr uint32_t kKernelMaxSubGroupSizeForNdRange = 0x2033;
inline constexpr uint32_t kProfilingCommandStart = 0x1282;
inline constexpr uint32_t kProfilingCommandEnd = 0x1283;

// Images: kinds of memory, orders of channels, their types.
inline constexpr uint32_t kMemObjectImage2d = 0x10F1;
inline constexpr uint32_t kRgba = 0x10B5;
inline constexpr uint32_t kHalfFloat = 0x10DD;
inline constexpr uint32_t kFloat = 0x10DE;

struct ImageFormat {
  uint32_t order = kRgba;
  uint32_t type = kFloat;
};

struct ImageDescription {
  uint32_t kind = kMemObjectImage2d;
  size_t width = 0, height = 0;  // pixels
  size_t depth = 0, layers = 0, row_bytes = 0, layer_bytes = 0;
  uint32_t mip_levels = 0, samples = 0;
  Memory memory = nullptr;
};

struct BufferRegion {
  size_t origin = 0;
  size_t size = 0;
};

struct Api {
  // Loads the loader, and with it every installed driver, once; it stays
  // loaded. NotFound when there is none on this machine; FailedPrecondition
  // with the reason when there is one that cannot be loaded, or is older than
  // OpenCL 1.2.
  static absl::StatusOr<const Api*> Load();

  int32_t (*GetPlatformIDs)(uint32_t, Platform*, uint32_t*);
  int32_t (*GetPlatformInfo)(Platform, uint32_t, size_t, void*, size_t*);
  int32_t (*GetDeviceIDs)(Platform, uint64_t, uint32_t, Device*, uint32_t*);
  int32_t (*GetDeviceInfo)(Device, uint32_t, size_t, void*, size_t*);
  Context (*CreateContext)(const intptr_t*, uint32_t, const Device*,
                           void (*)(const char*, const void*, size_t, void*),
                           void*, int32_t*);
  int32_t (*ReleaseContext)(Context);
  Queue (*CreateCommandQueue)(Context, Device, uint64_t, int32_t*);
  int32_t (*ReleaseCommandQueue)(Queue);
  Program (*CreateProgramWithSource)(Context, uint32_t, const char**,
                                     const size_t*, int32_t*);
  int32_t (*BuildProgram)(Program, uint32_t, const Device*, const char*,
                          void (*)(Program, void*), void*);
  int32_t (*GetProgramBuildInfo)(Program, Device, uint32_t, size_t, void*,
                                 size_t*);
  int32_t (*ReleaseProgram)(Program);
  Kernel (*CreateKernel)(Program, const char*, int32_t*);
  int32_t (*SetKernelArg)(Kernel, uint32_t, size_t, const void*);
  int32_t (*GetKernelWorkGroupInfo)(Kernel, Device, uint32_t, size_t, void*,
                                    size_t*);
  int32_t (*ReleaseKernel)(Kernel);
  Memory (*CreateBuffer)(Context, uint64_t, size_t, void*, int32_t*);
  Memory (*CreateSubBuffer)(Memory, uint64_t, uint32_t, const void*, int32_t*);
  int32_t (*GetSupportedImageFormats)(Context, uint64_t, uint32_t, uint32_t,
                                      ImageFormat*, uint32_t*);
  Memory (*CreateImage)(Context, uint64_t, const ImageFormat*,
                        const ImageDescription*, void*, int32_t*);
  int32_t (*ReleaseMemObject)(Memory);
  int32_t (*EnqueueFillBuffer)(Queue, Memory, const void*, size_t, size_t,
                               size_t, uint32_t, const Event*, Event*);
  int32_t (*EnqueueFillImage)(Queue, Memory, const void*, const size_t*,
                              const size_t*, uint32_t, const Event*, Event*);
  int32_t (*EnqueueReadBuffer)(Queue, Memory, uint32_t, size_t, size_t, void*,
                               uint32_t, const Event*, Event*);
  int32_t (*EnqueueWriteBuffer)(Queue, Memory, uint32_t, size_t, size_t,
                                const void*, uint32_t, const Event*, Event*);
  int32_t (*EnqueueNDRangeKernel)(Queue, Kernel, uint32_t, const size_t*,
                                  const size_t*, const size_t*, uint32_t,
                                  const Event*, Event*);
  int32_t (*Finish)(Queue);
  int32_t (*WaitForEvents)(uint32_t, const Event*);
  int32_t (*GetEventProfilingInfo)(Event, uint32_t, size_t, void*, size_t*);
  int32_t (*ReleaseEvent)(Event);
  // Of OpenCL 2.1: null in older loaders.
  int32_t (*GetKernelSubGroupInfo)(Kernel, Device, uint32_t, size_t,
                                   const void*, size_t, void*, size_t*);
};

// "CL_OUT_OF_RESOURCES (-5)"; the number alone for codes that are not above.
std::string ErrorName(int32_t code);

}  // namespace regatta::opencl

#endif  // REGATTA_DEVICE_AGENT_RUN_OPENCL_API_H_
