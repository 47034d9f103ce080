#include "device_agent/devices/driver_devices.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "device_agent/measure/trial_timer.h"
#include "device_agent/spawner/cpu_list.h"

namespace regatta {
namespace {

constexpr size_t kMaxSlug = 60;

// `device` as the agent serves it. The build worker's error when it does not
// build for it.
absl::StatusOr<ServedDevice> ServeDriverDevice(const Board& board,
                                               const v1::BoardDevice& device,
                                               const DriverDeviceName& name,
                                               const DriverNeeds& needs) {
  const std::vector<int> cpus = DriverCpus(board);
  v1::DescribeRequest describe;
  describe.set_cores(static_cast<int>(cpus.size()));
  *describe.mutable_device() = device;
  ASSIGN_OR_RETURN(const v1::Description description,
                   board.build_worker->Describe(describe));
  ServedDevice served;
  served.board = device;
  served.needs = needs;
  v1::DeviceInfo& info = served.info;
  info.set_device_id(name.device_id);
  info.set_device_class(name.device_class);
  info.set_target(description.target());
  info.set_cores(1);
  info.set_cpu_list(FormatCpuList(cpus));
  info.set_memory_bytes(device.memory_bytes());
  info.set_marketing_name(device.name());
  info.set_simulated(device.simulated());
  info.set_driver_version(
      absl::StrCat(device.platform(), ", ", device.driver_version()));
  info.set_health("probing");
  info.set_credit(board.credit);
  info.set_compiler_version(description.compiler_version());
  info.set_space(description.space());
  info.set_space_version(description.space_version());
  return served;
}

}  // namespace

std::vector<int> DriverCpus(const Board& board) {
  const size_t most = static_cast<size_t>(TrialTimer::kMaxThreads);
  const size_t count = std::min(board.cpus.size(), most);
  return {board.cpus.end() - static_cast<std::ptrdiff_t>(count),
          board.cpus.end()};
}

absl::StatusOr<std::vector<ServedDevice>> ServeDriverDevices(
    std::string_view kind, const Board& board, const DriverNeeds& needs,
    const std::function<DriverDeviceName(const v1::BoardDevice&)>& name_of) {
  v1::RunRequest request;
  request.add_list_kinds(std::string(kind));
  ASSIGN_OR_RETURN(
      const v1::RunResponse response,
      board.run_worker->Ask(request, needs, FormatCpuList(DriverCpus(board))));
  const v1::DeviceList& list = response.devices();
  absl::Status first_failure;
  for (const std::string& error : list.errors()) {
    LOG(kWarning) << "not served: " << error;
    first_failure.Update(absl::UnavailableError(error));
  }
  std::vector<ServedDevice> served;
  for (const v1::BoardDevice& device : list.devices()) {
    absl::StatusOr<ServedDevice> one =
        ServeDriverDevice(board, device, name_of(device), needs);
    if (one.ok()) {
      served.push_back(*std::move(one));
      continue;
    }
    LOG(kWarning) << std::string(kind) << " device " << device.selector()
                  << " (" << device.name()
                  << ") is not served: " << one.status().message();
    first_failure.Update(one.status());
  }
  if (served.empty()) RETURN_IF_ERROR(first_failure);
  return served;
}

std::string ClassSlug(const std::string& text) {
  std::string slug;
  for (const unsigned char c : text) {
    if (std::isalnum(c)) {
      slug.push_back(static_cast<char>(std::tolower(c)));
    } else if (!slug.empty() && slug.back() != '-') {
      slug.push_back('-');
    }
  }
  return std::string(absl::StripSuffix(slug.substr(0, kMaxSlug), "-"));
}

}  // namespace regatta
