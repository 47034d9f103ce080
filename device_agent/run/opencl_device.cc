#include "device_agent/run/opencl_device.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "device_agent/run/opencl_limits.h"

namespace regatta {
namespace opencl {
namespace {

// Extensions that generated code may make use of.
constexpr const char* kFeatures[] = {"cl_khr_fp16", "cl_khr_fp64",
                                     "cl_khr_subgroups",
                                     "cl_khr_integer_dot_product"};

struct Located {
  Device device = nullptr;
  std::string selector;  // "PLATFORM/DEVICE", both counted from 0
  std::string platform;
};

absl::Status Error(const char* what, int32_t code) {
  return absl::UnavailableError(absl::StrCat(what, ": ", ErrorName(code)));
}

std::string DeviceText(const Api& api, Device device, uint32_t question) {
  size_t bytes = 0;
  if (api.GetDeviceInfo(device, question, 0, nullptr, &bytes) != kSuccess) {
    return "";
  }
  std::string text(bytes, '\0');
  api.GetDeviceInfo(device, question, bytes, text.data(), nullptr);
  text.erase(std::find(text.begin(), text.end(), '\0'), text.end());
  return std::string(absl::StripAsciiWhitespace(text));
}

std::string PlatformText(const Api& api, Platform platform, uint32_t question) {
  char text[1024] = "";
  api.GetPlatformInfo(platform, question, sizeof(text) - 1, text, nullptr);
  return std::string(absl::StripAsciiWhitespace(text));
}

absl::StatusOr<std::vector<Located>> Locate(const Api& api) {
  std::vector<Located> found;
  uint32_t platform_count = 0;
  int32_t error = api.GetPlatformIDs(0, nullptr, &platform_count);
  if (error == kPlatformNotFound) return found;
  if (error != kSuccess) return Error("listing OpenCL platforms", error);
  std::vector<Platform> platforms(platform_count);
  error = api.GetPlatformIDs(platform_count, platforms.data(), nullptr);
  if (error != kSuccess) return Error("listing OpenCL platforms", error);
  for (uint32_t p = 0; p < platform_count; ++p) {
    uint32_t count = 0;
    error = api.GetDeviceIDs(platforms[p], kDeviceTypeAll, 0, nullptr, &count);
    if (error == kDeviceNotFound || count == 0) continue;
    std::vector<Device> devices(count);
    if (error == kSuccess) {
      error = api.GetDeviceIDs(platforms[p], kDeviceTypeAll, count,
                               devices.data(), nullptr);
    }
    const std::string name = PlatformText(api, platforms[p], kPlatformName);
    if (error != kSuccess) {
      return Error(absl::StrCat("listing devices of ", name).c_str(), error);
    }
    for (uint32_t d = 0; d < count; ++d) {
      const auto can = [&](uint32_t question) {
        return DeviceNumber<uint32_t>(api, devices[d], question) != 0;
      };
      if (!can(kDeviceAvailable) || !can(kDeviceCompilerAvailable)) continue;
      found.push_back({devices[d], absl::StrCat(p, "/", d), name});
    }
  }
  return found;
}

v1::BoardDevice Describe(const Api& api, const Located& located) {
  const auto number = [&]<typename T>(T, uint32_t question) {
    return static_cast<int64_t>(DeviceNumber<T>(api, located.device, question));
  };
  v1::BoardDevice facts;
  facts.set_kind("opencl");
  facts.set_selector(located.selector);
  facts.set_platform(located.platform);
  facts.set_name(DeviceText(api, located.device, kDeviceName));
  facts.set_driver_version(
      absl::StrCat(DeviceText(api, located.device, kDeviceVersion), ", driver ",
                   DeviceText(api, located.device, kDriverVersion)));
  facts.set_compute_units(
      static_cast<int32_t>(number(uint32_t{}, kDeviceMaxComputeUnits)));
  facts.set_on_host_cores((number(uint64_t{}, kDeviceType) & kDeviceTypeCpu) !=
                          0);
  facts.set_memory_bytes(number(uint64_t{}, kDeviceGlobalMemSize));
  facts.set_cache_bytes(number(uint64_t{}, kDeviceGlobalMemCacheSize));
  facts.set_max_group(number(size_t{}, kDeviceMaxWorkGroupSize));
  facts.set_local_bytes(number(uint64_t{}, kDeviceLocalMemSize));
  facts.set_vector_bits(static_cast<int32_t>(
      32 * number(uint32_t{}, kDeviceNativeVectorWidthFloat)));
  facts.set_clock_resolution_ns(
      number(size_t{}, kDeviceProfilingTimerResolution));
  const std::vector<std::string> extensions =
      absl::StrSplit(DeviceText(api, located.device, kDeviceExtensions), ' ');
  facts.set_subgroup(SubgroupSize(api, located.device, extensions));
  const ImageLimits images = ImageLimitsOf(api, located.device);
  facts.set_image_width(images.width);
  facts.set_image_height(images.height);
  for (const char* feature : kFeatures) {
    if (std::find(extensions.begin(), extensions.end(), feature) !=
        extensions.end()) {
      facts.add_features(feature);
    }
  }
  return facts;
}

}  // namespace

absl::StatusOr<FoundDevice> FindDevice(const std::string& selector) {
  ASSIGN_OR_RETURN(const Api* api, Api::Load());
  ASSIGN_OR_RETURN(const std::vector<Located> devices, Locate(*api));
  for (const Located& located : devices) {
    if (selector.empty() || located.selector == selector) {
      return FoundDevice{api, located.device};
    }
  }
  return absl::NotFoundError(absl::StrCat("OpenCL device ", selector,
                                          " is not there; ", devices.size(),
                                          " others are"));
}

}  // namespace opencl

absl::StatusOr<std::vector<v1::BoardDevice>> ListOpenClDevices() {
  std::vector<v1::BoardDevice> devices;
  const absl::StatusOr<const opencl::Api*> api = opencl::Api::Load();
  if (absl::IsNotFound(api.status())) return devices;
  RETURN_IF_ERROR(api.status());
  ASSIGN_OR_RETURN(const std::vector<opencl::Located> located,
                   opencl::Locate(**api));
  for (const opencl::Located& one : located) {
    devices.push_back(opencl::Describe(**api, one));
  }
  return devices;
}

}  // namespace regatta
