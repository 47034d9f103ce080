#include "device_agent/devices/device_provider.h"

#include "base/status_macros.h"

namespace regatta {

absl::StatusOr<CpuProbeResult> ProbeByRunWorker(
    std::string_view kind, const Board& board, const ServedDevice& device,
    const CpuProbeOptions& options) {
  v1::RunRequest request;
  request.set_probe_kind(std::string(kind));
  request.set_device(device.board.selector());
  absl::StatusOr<v1::RunResponse> response;
  RETURN_IF_ERROR(options.exclusively([&] {
    response =
        board.run_worker->Ask(request, device.needs, device.info.cpu_list());
  }));
  if (options.stop != nullptr && *options.stop) {
    return absl::CancelledError("the probe was stopped");
  }
  RETURN_IF_ERROR(response.status());
  CpuProbeResult result;
  result.caches.l3_bytes = device.board.cache_bytes();
  result.peak_flops_per_s = response->probe().peak_flops_per_s();
  result.bandwidth_bytes_per_s = response->probe().bandwidth_bytes_per_s();
  result.noise_floor = response->probe().noise_floor();
  return result;
}

}  // namespace regatta
