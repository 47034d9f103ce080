#include "device_agent/run/opencl_api.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/shared_library.h"
#include "base/status_macros.h"

namespace regatta::opencl {
namespace {

constexpr char kLoader[] = "libOpenCL.so.1";

absl::StatusOr<Api> Resolve() {
  ASSIGN_OR_RETURN(SharedLibrary library, SharedLibrary::Open(kLoader));
  Api api;
  library.Resolve("clGetPlatformIDs", api.GetPlatformIDs);
  library.Resolve("clGetPlatformInfo", api.GetPlatformInfo);
  library.Resolve("clGetDeviceIDs", api.GetDeviceIDs);
  library.Resolve("clGetDeviceInfo", api.GetDeviceInfo);
  library.Resolve("clCreateContext", api.CreateContext);
  library.Resolve("clReleaseContext", api.ReleaseContext);
  library.Resolve("clCreateCommandQueue", api.CreateCommandQueue);
  library.Resolve("clReleaseCommandQueue", api.ReleaseCommandQueue);
  library.Resolve("clCreateProgramWithSource", api.CreateProgramWithSource);
  library.Resolve("clBuildProgram", api.BuildProgram);
  library.Resolve("clGetProgramBuildInfo", api.GetProgramBuildInfo);
  library.Resolve("clReleaseProgram", api.ReleaseProgram);
  library.Resolve("clCreateKernel", api.CreateKernel);
  library.Resolve("clSetKernelArg", api.SetKernelArg);
  library.Resolve("clGetKernelWorkGroupInfo", api.GetKernelWorkGroupInfo);
  library.Resolve("clReleaseKernel", api.ReleaseKernel);
  library.Resolve("clCreateBuffer", api.CreateBuffer);
  library.Resolve("clCreateSubBuffer", api.CreateSubBuffer);
  library.Resolve("clGetSupportedImageFormats", api.GetSupportedImageFormats);
  library.Resolve("clCreateImage", api.CreateImage);
  library.Resolve("clReleaseMemObject", api.ReleaseMemObject);
  library.Resolve("clEnqueueFillBuffer", api.EnqueueFillBuffer);
  library.Resolve("clEnqueueFillImage", api.EnqueueFillImage);
  library.Resolve("clEnqueueReadBuffer", api.EnqueueReadBuffer);
  library.Resolve("clEnqueueWriteBuffer", api.EnqueueWriteBuffer);
  library.Resolve("clEnqueueNDRangeKernel", api.EnqueueNDRangeKernel);
  library.Resolve("clFinish", api.Finish);
  library.Resolve("clWaitForEvents", api.WaitForEvents);
  library.Resolve("clGetEventProfilingInfo", api.GetEventProfilingInfo);
  library.Resolve("clReleaseEvent", api.ReleaseEvent);
  if (const absl::Status complete = library.Complete(); !complete.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("older than OpenCL 1.2: ", complete.message()));
  }
  api.GetKernelSubGroupInfo =
      reinterpret_cast<decltype(api.GetKernelSubGroupInfo)>(
          library.Symbol("clGetKernelSubGroupInfo"));
  return api;
}

const char* KnownName(int32_t code) {
  switch (code) {
    case kSuccess:
      return "CL_SUCCESS";
    case kDeviceNotFound:
      return "CL_DEVICE_NOT_FOUND";
    case kDeviceNotAvailable:
      return "CL_DEVICE_NOT_AVAILABLE";
    case kMemObjectAllocationFailure:
      return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case kOutOfResources:
      return "CL_OUT_OF_RESOURCES";
    case kOutOfHostMemory:
      return "CL_OUT_OF_HOST_MEMORY";
    case kImageFormatNotSupported:
      return "CL_IMAGE_FORMAT_NOT_SUPPORTED";
    case kInvalidCommandQueue:
      return "CL_INVALID_COMMAND_QUEUE";
    case kInvalidImageSize:
      return "CL_INVALID_IMAGE_SIZE";
    case kBuildProgramFailure:
      return "CL_BUILD_PROGRAM_FAILURE";
    case kExecStatusErrorForEventsInWaitList:
      return "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";
    case kInvalidBuildOptions:
      return "CL_INVALID_BUILD_OPTIONS";
    case kInvalidKernelName:
      return "CL_INVALID_KERNEL_NAME";
    case kInvalidArgIndex:
      return "CL_INVALID_ARG_INDEX";
    case kInvalidKernelArgs:
      return "CL_INVALID_KERNEL_ARGS";
    case kInvalidWorkGroupSize:
      return "CL_INVALID_WORK_GROUP_SIZE";
    case kInvalidWorkItemSize:
      return "CL_INVALID_WORK_ITEM_SIZE";
    case kInvalidBufferSize:
      return "CL_INVALID_BUFFER_SIZE";
    case kInvalidGlobalWorkSize:
      return "CL_INVALID_GLOBAL_WORK_SIZE";
    case kPlatformNotFound:
      return "CL_PLATFORM_NOT_FOUND_KHR";
    case kIllegalAccessNv:
      return "illegal read or write, by NVIDIA's driver";
    default:
      return nullptr;
  }
}

}  // namespace

absl::StatusOr<const Api*> Api::Load() {
  static const absl::StatusOr<Api>* const api =
      new absl::StatusOr<Api>(Resolve());
  if (!api->ok()) return api->status();
  return &**api;
}

std::string ErrorName(int32_t code) {
  const char* name = KnownName(code);
  return name == nullptr ? absl::StrCat("OpenCL error ", code)
                         : absl::StrCat(name, " (", code, ")");
}

}  // namespace regatta::opencl
