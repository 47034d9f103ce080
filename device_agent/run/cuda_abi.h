// The part of CUDA's driver interface that is used here, declared after its
// manual (CUDA Driver API): no header of CUDA is needed to build. Names are the
// manual's without their prefixes.
#ifndef REGATTA_DEVICE_AGENT_RUN_CUDA_ABI_H_
#define REGATTA_DEVICE_AGENT_RUN_CUDA_ABI_H_

#include <cstdint>

namespace regatta::cuda {

using Result = int;        // CUresult
using Device = int;        // CUdevice
using Address = uint64_t;  // CUdeviceptr
using Context = struct ContextObject*;
using CodeModule = struct ModuleObject*;  // CUmodule
using Function = struct FunctionObject*;
using Event = struct EventObject*;
using Stream = struct StreamObject*;

// CUresult.
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotInitialized = 3;
inline constexpr Result kStubLibrary = 34;
inline constexpr Result kDeviceUnavailable = 46;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kInvalidDevice = 101;
inline constexpr Result kInvalidImage = 200;
inline constexpr Result kInvalidContext = 201;
inline constexpr Result kNoBinaryForGpu = 209;
inline constexpr Result kInvalidPtx = 218;
inline constexpr Result kJitCompilerNotFound = 221;
inline constexpr Result kUnsupportedPtxVersion = 222;
inline constexpr Result kInvalidHandle = 400;
inline constexpr Result kNotFound = 500;
inline constexpr Result kIllegalAddress = 700;
inline constexpr Result kLaunchOutOfResources = 701;
inline constexpr Result kLaunchTimeout = 702;
inline constexpr Result kAssert = 710;
inline constexpr Result kHardwareStackError = 714;
inline constexpr Result kIllegalInstruction = 715;
inline constexpr Result kMisalignedAddress = 716;
inline constexpr Result kInvalidAddressSpace = 717;
inline constexpr Result kInvalidPc = 718;
inline constexpr Result kLaunchFailed = 719;

// CUdevice_attribute.
enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxSharedPerBlock = 8,
  kWarpSize = 10,
  kClockKilohertz = 13,
  kProcessors = 16,  // streaming multiprocessors
  kIntegrated = 18,
  kL2Bytes = 38,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kManagedMemory = 83,
  kMaxSharedPerBlockOptin = 97,
};

// CUfunction_attribute.
enum FunctionAttribute : int {
  kFunctionMaxThreads = 0,
  kFunctionStaticShared = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicShared = 8,
};

// CUjit_option.
enum JitOption : int { kJitErrorLog = 5, kJitErrorLogBytes = 6 };

inline constexpr unsigned kScheduleBlockingSync = 4;  // of a context
inline constexpr unsigned kAttachGlobal = 1;          // of managed memory

// What a simulator of the driver exports beside the driver's functions: what
// the last failed launch did wrong, as one line; "" when none did. Valid until
// the next call. The agent takes a driver that has it for a simulator.
inline constexpr char kSimulatorSymbol[] = "regatta_cuda_simulator";
using SimulatorFault = const char*();

}  // namespace regatta::cuda

#endif  // REGATTA_DEVICE_AGENT_RUN_CUDA_ABI_H_
