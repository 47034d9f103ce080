#include "device_agent/run/opencl_limits.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "device_agent/run/opencl_device.h"

namespace regatta::opencl {
namespace {

constexpr char kProbe[] =
    "__kernel void probe(__global int* x) { x[get_global_id(0)] = 1; }";
// More pixels in a row than any code asks for.
constexpr size_t kMostPixels = 1 << 20;
// Of the group that sub-groups are asked for: every device has that many.
constexpr size_t kGroup = 64;

int32_t AsInt(uint64_t value) {
  return static_cast<int32_t>(
      std::min<uint64_t>(value, std::numeric_limits<int32_t>::max()));
}

bool Has(const std::vector<std::string>& extensions, const char* name) {
  return std::find(extensions.begin(), extensions.end(), name) !=
         extensions.end();
}

// A kernel and what it takes to have one; null where any of it fails.
class TinyKernel {
 public:
  TinyKernel(const Api& api, Device device) : api_(api) {
    int32_t error = kSuccess;
    context_ = api.CreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    if (error != kSuccess) return;
    const char* source = kProbe;
    program_ =
        api.CreateProgramWithSource(context_, 1, &source, nullptr, &error);
    if (error != kSuccess || api.BuildProgram(program_, 1, &device, "", nullptr,
                                              nullptr) != kSuccess) {
      return;
    }
    kernel_ = api.CreateKernel(program_, "probe", &error);
    if (error != kSuccess) kernel_ = nullptr;
  }
  ~TinyKernel() {
    if (kernel_ != nullptr) api_.ReleaseKernel(kernel_);
    if (program_ != nullptr) api_.ReleaseProgram(program_);
    if (context_ != nullptr) api_.ReleaseContext(context_);
  }
  TinyKernel(const TinyKernel&) = delete;

  Kernel get() const { return kernel_; }

 private:
  const Api& api_;
  Context context_ = nullptr;
  Program program_ = nullptr;
  Kernel kernel_ = nullptr;
};

bool HasFormat(const Api& api, Context context, uint32_t type) {
  uint32_t count = 0;
  if (api.GetSupportedImageFormats(context, kMemReadWrite, kMemObjectImage2d, 0,
                                   nullptr, &count) != kSuccess) {
    return false;
  }
  std::vector<ImageFormat> formats(count);
  if (api.GetSupportedImageFormats(context, kMemReadWrite, kMemObjectImage2d,
                                   count, formats.data(),
                                   nullptr) != kSuccess) {
    return false;
  }
  return std::any_of(formats.begin(), formats.end(),
                     [&](const ImageFormat& format) {
                       return format.order == kRgba && format.type == type;
                     });
}

}  // namespace

ImageLimits ImageLimitsOf(const Api& api, Device device) {
  if (DeviceNumber<uint32_t>(api, device, kDeviceImageSupport) == 0) return {};
  int32_t error = kSuccess;
  const Context context =
      api.CreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
  if (error != kSuccess) return {};
  const bool both =
      HasFormat(api, context, kFloat) && HasFormat(api, context, kHalfFloat);
  api.ReleaseContext(context);
  if (!both) return {};
  const auto most = [&](uint32_t question) {
    return AsInt(
        std::min(kMostPixels, DeviceNumber<size_t>(api, device, question)));
  };
  return {most(kDeviceImage2dMaxWidth), most(kDeviceImage2dMaxHeight)};
}

int32_t SubgroupSize(const Api& api, Device device,
                     const std::vector<std::string>& extensions) {
  if (Has(extensions, "cl_nv_device_attribute_query")) {
    return AsInt(DeviceNumber<uint32_t>(api, device, kDeviceWarpSizeNv));
  }
  if (Has(extensions, "cl_amd_device_attribute_query")) {
    return AsInt(DeviceNumber<uint32_t>(api, device, kDeviceWavefrontWidthAmd));
  }
  if (!Has(extensions, "cl_khr_subgroups") &&
      !Has(extensions, "cl_intel_subgroups") &&
      !Has(extensions, "cl_qcom_subgroup_shuffle")) {
    return 0;
  }
  const TinyKernel kernel(api, device);
  if (kernel.get() == nullptr) return 0;
  size_t size = 0;
  if (api.GetKernelSubGroupInfo != nullptr &&
      api.GetKernelSubGroupInfo(
          kernel.get(), device, kKernelMaxSubGroupSizeForNdRange,
          sizeof(kGroup), &kGroup, sizeof(size), &size, nullptr) == kSuccess &&
      size > 0) {
    return AsInt(size);
  }
  // Loaders before OpenCL 2.1 have no such question; groups are then best a
  // multiple of what runs in step.
  if (api.GetKernelWorkGroupInfo(kernel.get(), device,
                                 kKernelPreferredWorkGroupSizeMultiple,
                                 sizeof(size), &size, nullptr) != kSuccess) {
    return 0;
  }
  return AsInt(size);
}

}  // namespace regatta::opencl
