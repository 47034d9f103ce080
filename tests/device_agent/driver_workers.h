// What an agent asks its workers about devices, with real run workers and a
// build worker that only describes.
#ifndef REGATTA_TESTS_DEVICE_AGENT_DRIVER_WORKERS_H_
#define REGATTA_TESTS_DEVICE_AGENT_DRIVER_WORKERS_H_

#include <memory>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "device_agent/build/device_target.h"
#include "device_agent/devices/device_provider.h"
#include "device_agent/measure/driver_question.h"

namespace regatta {

// Says of a device what the compiler would.
class PlantedBuildInfo : public BuildWorkerInfo {
 public:
  absl::StatusOr<v1::Description> Describe(
      const v1::DescribeRequest& request) override {
    ASSIGN_OR_RETURN(const Target target, TargetOfDevice(request.device()));
    v1::Description description;
    description.set_target(target.ToString());
    description.set_compiler_version("planted");
    description.set_space(target.kind);
    description.set_space_version(1);
    return description;
  }
};

class SpawnedRunWorker : public RunWorkerInfo {
 public:
  explicit SpawnedRunWorker(std::shared_ptr<SpawnerClient> spawner)
      : spawner_(std::move(spawner)) {}
  absl::StatusOr<v1::RunResponse> Ask(const v1::RunRequest& request,
                                      const DriverNeeds& needs,
                                      const std::string& cpu_list) override {
    RunWorkerOptions options;
    options.program = REGATTA_BIN_DIR "/regatta-run-worker";
    options.cpu_list = cpu_list;
    options.wall_limit_ms = 60'000;
    options.memory_bytes = int64_t{2} << 30;
    options.needs = needs;
    return AskRunWorker(options, spawner_, request);
  }

 private:
  const std::shared_ptr<SpawnerClient> spawner_;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_DEVICE_AGENT_DRIVER_WORKERS_H_
