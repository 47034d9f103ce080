#include "device_agent/run/opencl_device.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "compiler/module/opencl_features.h"
#include "device_agent/run/opencl_limits.h"

namespace regatta {
namespace opencl {
namespace {

// More platforms, or devices of one, are nonsense.
constexpr uint32_t kMaxDevices = 1024;

struct OneDevice {
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

struct Located {
  std::vector<OneDevice> devices;
  std::vector<std::string> errors;  // of platforms
};

absl::StatusOr<std::vector<Device>> DevicesOf(const Api& api,
                                              Platform platform) {
  uint32_t count = 0;
  int32_t error =
      api.GetDeviceIDs(platform, kDeviceTypeAll, 0, nullptr, &count);
  if (error == kDeviceNotFound) return std::vector<Device>();
  if (error != kSuccess) return Error("listing devices", error);
  if (count > kMaxDevices) {
    return absl::UnavailableError(
        absl::StrCat("listing devices: it says that it has ", count));
  }
  std::vector<Device> devices(count);
  if (count == 0) return devices;
  error = api.GetDeviceIDs(platform, kDeviceTypeAll, count, devices.data(),
                           nullptr);
  if (error != kSuccess) return Error("listing devices", error);
  return devices;
}

absl::StatusOr<std::vector<Platform>> Platforms(const Api& api) {
  constexpr char kWhat[] = "listing OpenCL platforms";
  uint32_t count = 0;
  int32_t error = api.GetPlatformIDs(0, nullptr, &count);
  if (error == kPlatformNotFound) return std::vector<Platform>();
  if (error != kSuccess) return Error(kWhat, error);
  if (count > kMaxDevices) {
    return absl::UnavailableError(
        absl::StrCat(kWhat, ": the loader says that there are ", count));
  }
  std::vector<Platform> platforms(count);
  if (count == 0) return platforms;
  error = api.GetPlatformIDs(count, platforms.data(), nullptr);
  if (error != kSuccess) return Error(kWhat, error);
  return platforms;
}

absl::StatusOr<Located> Locate(const Api& api) {
  ASSIGN_OR_RETURN(const std::vector<Platform> platforms, Platforms(api));
  Located located;
  for (size_t p = 0; p < platforms.size(); ++p) {
    const std::string name = PlatformText(api, platforms[p], kPlatformName);
    const auto devices = DevicesOf(api, platforms[p]);
    if (!devices.ok()) {
      located.errors.push_back(absl::StrCat("platform ", p, " (", name,
                                            "): ", devices.status().message()));
      continue;
    }
    for (size_t d = 0; d < devices->size(); ++d) {
      const Device device = (*devices)[d];
      const auto can = [&](uint32_t question) {
        return DeviceNumber<uint32_t>(api, device, question) != 0;
      };
      if (!can(kDeviceAvailable) || !can(kDeviceCompilerAvailable)) continue;
      located.devices.push_back({device, absl::StrCat(p, "/", d), name});
    }
  }
  return located;
}

v1::BoardDevice Describe(const Api& api, const OneDevice& located) {
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
  for (const char* feature : kOpenClFeatures) {
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
  ASSIGN_OR_RETURN(const Located located, Locate(*api));
  for (const OneDevice& one : located.devices) {
    if (selector.empty() || one.selector == selector) {
      return FoundDevice{api, one.device};
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "OpenCL device ", selector, " is not there; ", located.devices.size(),
      " others are", located.errors.empty() ? "" : "; ",
      absl::StrJoin(located.errors, "; ")));
}

}  // namespace opencl

absl::StatusOr<v1::DeviceList> ListOpenClDevices() {
  v1::DeviceList list;
  const absl::StatusOr<const opencl::Api*> api = opencl::Api::Load();
  if (absl::IsNotFound(api.status())) return list;
  RETURN_IF_ERROR(api.status());
  ASSIGN_OR_RETURN(const opencl::Located located, opencl::Locate(**api));
  for (const opencl::OneDevice& one : located.devices) {
    *list.add_devices() = opencl::Describe(**api, one);
  }
  for (const std::string& error : located.errors) list.add_errors(error);
  return list;
}

}  // namespace regatta
