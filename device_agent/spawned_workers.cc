#include "device_agent/spawned_workers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "device_agent/measure/build_client.h"
#include "device_agent/measure/driver_question.h"

namespace regatta {
namespace {

constexpr int64_t kDescribeLimitMs = 30'000;
constexpr int64_t kDriverLimitMs = 60'000;
constexpr int64_t kDriverMemoryBytes = int64_t{4} << 30;

}  // namespace

absl::StatusOr<v1::Description> DescribingWorker::Describe(
    const v1::DescribeRequest& device) {
  v1::DescribeRequest request = device;
  if (!device.has_device()) request.MergeFrom(host_);
  return regatta::Describe(*worker_, request, cancelled_);
}

std::unique_ptr<BuildWorker> SpawnedBuildWorker(
    const RunnerOptions& options, std::shared_ptr<SpawnerClient> spawner) {
  BuildWorkerOptions build;
  build.program = absl::StrCat(options.worker_dir, "/", options.build_worker);
  build.exec_prefix = options.exec_prefix;
  build.limit_ms = kDescribeLimitMs;
  return std::make_unique<BuildClient>(std::move(build), std::move(spawner));
}

absl::StatusOr<v1::BuilderReach> AskReach(BuildWorker& worker) {
  v1::BuildRequest request;
  request.mutable_reach();
  ASSIGN_OR_RETURN(const BuildWorker::Reply reply,
                   worker.Call(std::move(request), /*cancelled=*/nullptr));
  if (reply.response.has_reach()) return reply.response.reach();
  return absl::UnavailableError(
      absl::StrCat("build worker: ", reply.response.failure().detail()));
}

SpawnedRunWorkers::SpawnedRunWorkers(const RunnerOptions& options,
                                     std::shared_ptr<SpawnerClient> spawner)
    : spawner_(std::move(spawner)) {
  options_.program = options.worker_dir + "/regatta-run-worker";
  options_.exec_prefix = options.exec_prefix;
  options_.wall_limit_ms = kDriverLimitMs;
  options_.memory_bytes = kDriverMemoryBytes;
}

absl::StatusOr<v1::RunResponse> SpawnedRunWorkers::Ask(
    const v1::RunRequest& request, const DriverNeeds& needs,
    const std::string& cpu_list) {
  RunWorkerOptions options = options_;
  options.needs = needs;
  options.cpu_list = cpu_list;
  return AskRunWorker(std::move(options), spawner_, request);
}

}  // namespace regatta
