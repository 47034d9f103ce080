#include "device_agent/devices/driver_devices.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "device_agent/measure/trial_timer.h"
#include "device_agent/spawner/cpu_list.h"

namespace regatta {
namespace {

constexpr size_t kMaxSlug = 60;

}  // namespace

std::vector<int> DriverCpus(const Board& board) {
  const size_t most = static_cast<size_t>(TrialTimer::kMaxThreads);
  const size_t count = std::min(board.cpus.size(), most);
  return {board.cpus.end() - static_cast<std::ptrdiff_t>(count),
          board.cpus.end()};
}

absl::StatusOr<std::vector<v1::BoardDevice>> ListDriverDevices(
    const std::string& kind, const Board& board, const DriverNeeds& needs) {
  v1::RunRequest request;
  request.add_list_kinds(kind);
  ASSIGN_OR_RETURN(
      const v1::RunResponse response,
      board.run_worker->Ask(request, needs, FormatCpuList(DriverCpus(board))));
  if (response.devices().errors_size() > 0) {
    return absl::UnavailableError(
        absl::StrJoin(response.devices().errors(), "; "));
  }
  return std::vector<v1::BoardDevice>(response.devices().devices().begin(),
                                      response.devices().devices().end());
}

absl::StatusOr<ServedDevice> ServeDriverDevice(const Board& board,
                                               const v1::BoardDevice& device,
                                               const std::string& device_id,
                                               const std::string& device_class,
                                               DriverNeeds needs) {
  const std::vector<int> cpus = DriverCpus(board);
  v1::DescribeRequest describe;
  describe.set_cores(static_cast<int>(cpus.size()));
  *describe.mutable_device() = device;
  ASSIGN_OR_RETURN(const v1::Description description,
                   board.build_worker->Describe(describe));
  ServedDevice served;
  served.board = device;
  served.needs = std::move(needs);
  v1::DeviceInfo& info = served.info;
  info.set_device_id(device_id);
  info.set_device_class(device_class);
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
