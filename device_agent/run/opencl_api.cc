#include "device_agent/run/opencl_api.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace regatta::opencl {
namespace {

constexpr char kLoader[] = "libOpenCL.so.1";

struct Resolver {
  void* library;
  std::string missing;

  template <typename Function>
  void operator()(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (function == nullptr) absl::StrAppend(&missing, " ", name);
  }
};

absl::StatusOr<Api> Resolve() {
  // Never unloaded: drivers leave threads behind.
  void* library = dlopen(kLoader, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::NotFoundError(absl::StrCat("no OpenCL here: ", dlerror()));
  }
  Api api;
  Resolver resolve{library, ""};
  resolve("clGetPlatformIDs", api.GetPlatformIDs);
  resolve("clGetPlatformInfo", api.GetPlatformInfo);
  resolve("clGetDeviceIDs", api.GetDeviceIDs);
  resolve("clGetDeviceInfo", api.GetDeviceInfo);
  resolve("clCreateContext", api.CreateContext);
  resolve("clReleaseContext", api.ReleaseContext);
  resolve("clCreateCommandQueue", api.CreateCommandQueue);
  resolve("clReleaseCommandQueue", api.ReleaseCommandQueue);
  resolve("clCreateProgramWithSource", api.CreateProgramWithSource);
  resolve("clBuildProgram", api.BuildProgram);
  resolve("clGetProgramBuildInfo", api.GetProgramBuildInfo);
  resolve("clReleaseProgram", api.ReleaseProgram);
  resolve("clCreateKernel", api.CreateKernel);
  resolve("clSetKernelArg", api.SetKernelArg);
  resolve("clGetKernelWorkGroupInfo", api.GetKernelWorkGroupInfo);
  resolve("clReleaseKernel", api.ReleaseKernel);
  resolve("clCreateBuffer", api.CreateBuffer);
  resolve("clCreateSubBuffer", api.CreateSubBuffer);
  resolve("clGetSupportedImageFormats", api.GetSupportedImageFormats);
  resolve("clCreateImage", api.CreateImage);
  resolve("clReleaseMemObject", api.ReleaseMemObject);
  resolve("clEnqueueFillBuffer", api.EnqueueFillBuffer);
  resolve("clEnqueueFillImage", api.EnqueueFillImage);
  resolve("clEnqueueReadBuffer", api.EnqueueReadBuffer);
  resolve("clEnqueueWriteBuffer", api.EnqueueWriteBuffer);
  resolve("clEnqueueNDRangeKernel", api.EnqueueNDRangeKernel);
  resolve("clFinish", api.Finish);
  resolve("clWaitForEvents", api.WaitForEvents);
  resolve("clGetEventProfilingInfo", api.GetEventProfilingInfo);
  resolve("clReleaseEvent", api.ReleaseEvent);
  if (!resolve.missing.empty()) {
    return absl::NotFoundError(absl::StrCat(
        kLoader, " is older than OpenCL 1.2: it lacks", resolve.missing));
  }
  api.GetKernelSubGroupInfo =
      reinterpret_cast<decltype(api.GetKernelSubGroupInfo)>(
          dlsym(library, "clGetKernelSubGroupInfo"));
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
