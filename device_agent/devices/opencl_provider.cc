#include "device_agent/devices/opencl_provider.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "device_agent/measure/trial_timer.h"
#include "device_agent/spawner/cpu_list.h"

namespace regatta {
namespace {

constexpr char kPocl[] = "Portable Computing Language";
// Compiled kernels of one run worker.
constexpr int64_t kScratchBytes = int64_t{256} << 20;
// A driver's own threads and its compiler's processes.
constexpr int kDriverTasks = 64;
constexpr int64_t kStartMs = 30'000;
constexpr size_t kMaxSlug = 60;

// Through which drivers reach their hardware; those that are not there are
// skipped.
const std::vector<std::string>& DeviceFiles() {
  static const auto& files = *new std::vector<std::string>{
      "/dev/dri",       "/dev/kfd",        "/dev/mali0",   "/dev/kgsl-3d0",
      "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1",
      "/dev/nvidia2",   "/dev/nvidia3",    "/dev/nvidia4", "/dev/nvidia5",
      "/dev/nvidia6",   "/dev/nvidia7"};
  return files;
}

// Lower case, with one '-' for whatever a class name cannot have.
std::string Slug(const std::string& text) {
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

// What run workers need before it is known which devices there are.
DriverNeeds NeedsOf(int cores) {
  DriverNeeds needs;
  needs.driver = true;
  needs.max_tasks = kDriverTasks + 4 * cores;
  needs.scratch_bytes = kScratchBytes;
  needs.writable = DeviceFiles();
  // PoCL would start a thread for each of the machine's processors, whichever
  // of them it may use.
  needs.environment = {absl::StrCat("POCL_MAX_PTHREAD_COUNT=", cores)};
  needs.start_ms = kStartMs;
  return needs;
}

// The processors of a run: not more than can be locked for it.
std::vector<int> RunCpus(const Board& board) {
  const size_t most = static_cast<size_t>(TrialTimer::kMaxThreads);
  const size_t count = std::min(board.cpus.size(), most);
  return {board.cpus.end() - static_cast<std::ptrdiff_t>(count),
          board.cpus.end()};
}

class OpenClDeviceProvider : public DeviceProvider {
 public:
  std::string_view kind() const override { return "opencl"; }

  absl::StatusOr<std::vector<ServedDevice>> Find(
      const Board& board) const override {
    const std::vector<int> cpus = RunCpus(board);
    v1::RunRequest request;
    request.add_list_kinds("opencl");
    ASSIGN_OR_RETURN(
        const v1::RunResponse response,
        board.run_worker->Ask(request, NeedsOf(static_cast<int>(cpus.size())),
                              FormatCpuList(cpus)));
    if (response.devices().errors_size() > 0) {
      return absl::UnavailableError(
          absl::StrJoin(response.devices().errors(), "; "));
    }
    std::vector<ServedDevice> served;
    for (const v1::BoardDevice& device : response.devices().devices()) {
      ASSIGN_OR_RETURN(ServedDevice one,
                       Serve(board, device, cpus, served.size()));
      served.push_back(std::move(one));
    }
    return served;
  }

  absl::StatusOr<CpuProbeResult> Probe(
      const Board& board, const ServedDevice& device,
      const CpuProbeOptions& options) const override {
    return ProbeByRunWorker(kind(), board, device, options);
  }

 private:
  static absl::StatusOr<ServedDevice> Serve(const Board& board,
                                            const v1::BoardDevice& device,
                                            const std::vector<int>& cpus,
                                            size_t ordinal) {
    v1::DescribeRequest describe;
    describe.set_cores(static_cast<int>(cpus.size()));
    *describe.mutable_device() = device;
    ASSIGN_OR_RETURN(const v1::Description description,
                     board.build_worker->Describe(describe));
    ServedDevice served;
    served.board = device;
    served.needs = NeedsOf(static_cast<int>(cpus.size()));
    served.needs.all_cores = device.on_host_cores();
    v1::DeviceInfo& info = served.info;
    info.set_device_id(absl::StrCat(board.agent_id, "-opencl", ordinal));
    info.set_device_class(OpenClDeviceClass(device, board.host.device_class()));
    info.set_target(description.target());
    info.set_cores(1);
    info.set_cpu_list(FormatCpuList(cpus));
    info.set_memory_bytes(device.memory_bytes());
    info.set_marketing_name(device.name());
    info.set_driver_version(
        absl::StrCat(device.platform(), ", ", device.driver_version()));
    info.set_health("probing");
    info.set_credit(board.credit);
    info.set_compiler_version(description.compiler_version());
    info.set_space(description.space());
    info.set_space_version(description.space_version());
    return served;
  }
};

}  // namespace

const DeviceProvider& OpenClProvider() {
  static const OpenClDeviceProvider& provider = *new OpenClDeviceProvider;
  return provider;
}

std::string OpenClDeviceClass(const v1::BoardDevice& device,
                              const std::string& host_class) {
  if (device.on_host_cores()) {
    return absl::StrCat(
        "opencl-",
        device.platform() == kPocl ? "pocl" : Slug(device.platform()), "-",
        host_class);
  }
  return absl::StrCat("opencl-", Slug(device.name()), "-",
                      device.compute_units(), "cu");
}

}  // namespace regatta
