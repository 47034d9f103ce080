#include "device_agent/devices/provider_list.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "device_agent/devices/cpu_provider.h"
#include "device_agent/devices/cuda_provider.h"
#include "device_agent/devices/opencl_provider.h"

namespace regatta {
namespace {

// What an emulator runs shares no times with what a processor does.
void MarkSimulated(v1::DeviceInfo& device) {
  device.set_simulated(true);
  if (!absl::StartsWith(device.device_class(), kSimulatedPrefix)) {
    device.set_device_class(
        absl::StrCat(kSimulatedPrefix, device.device_class()));
  }
}

absl::Status Bad(const std::string& kind, const char* why) {
  const std::string known =
      absl::StrJoin(AllProviders(), ", ", [](std::string* out, const auto* p) {
        absl::StrAppend(out, std::string(p->kind()));
      });
  return absl::InvalidArgumentError(
      absl::StrCat("--devices: \"", kind, "\" ", why, "; kinds are ", known));
}

}  // namespace

const Providers& AllProviders() {
  // To add a kind of device, add its provider here.
  static const Providers& providers =
      *new Providers{&CpuProvider(), &OpenClProvider(), &CudaProvider()};
  return providers;
}

absl::StatusOr<Providers> ChooseProviders(std::string_view kinds) {
  Providers chosen;
  const std::vector<std::string> names =
      absl::StrSplit(std::string(kinds), ',');
  for (const std::string& part : names) {
    const std::string name(absl::StripAsciiWhitespace(part));
    const auto known =
        std::find_if(AllProviders().begin(), AllProviders().end(),
                     [&](const auto* p) { return p->kind() == name; });
    if (known == AllProviders().end()) {
      return Bad(name, "is no kind of device that this agent knows");
    }
    if (std::find(chosen.begin(), chosen.end(), *known) != chosen.end()) {
      return Bad(name, "is given twice");
    }
    chosen.push_back(*known);
  }
  return chosen;
}

absl::StatusOr<std::vector<FoundDevice>> FindDevices(const Providers& providers,
                                                     const Board& board) {
  std::vector<FoundDevice> devices;
  std::vector<std::string> absent;
  for (const DeviceProvider* provider : providers) {
    absl::StatusOr<std::vector<ServedDevice>> found = provider->Find(board);
    if (found.ok() && !found->empty()) {
      for (ServedDevice& device : *found) {
        if (!board.emulator.empty()) MarkSimulated(device.info);
        devices.push_back({std::move(device), provider});
      }
      continue;
    }
    const std::string why =
        found.ok() ? "none here" : std::string(found.status().message());
    const std::string named = absl::StrCat(std::string(provider->kind()), ": ");
    absent.push_back(absl::StartsWith(why, named) ? why
                                                  : absl::StrCat(named, why));
    if (found.ok()) {
      LOG(kInfo) << "no devices of kind " << absent.back();
    } else {
      LOG(kWarning) << "devices not served: " << absent.back();
    }
  }
  if (devices.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no device to serve: ", absl::StrJoin(absent, "; ")));
  }
  return devices;
}

}  // namespace regatta
