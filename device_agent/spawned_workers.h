// What the agent asks its workers before it serves anything: workers are
// started for the question.
#ifndef REGATTA_DEVICE_AGENT_SPAWNED_WORKERS_H_
#define REGATTA_DEVICE_AGENT_SPAWNED_WORKERS_H_

#include <functional>
#include <memory>
#include <string>

#include "device_agent/devices/device_provider.h"
#include "device_agent/loop/agent_setup.h"
#include "device_agent/measure/build_worker.h"
#include "device_agent/measure/run_client.h"
#include "device_agent/measure/trial_runner.h"

namespace regatta {

// Asks whoever builds for this board. `host`: of the processors, where they do
// not describe themselves (RunnerOptions::host).
class DescribingWorker : public BuildWorkerInfo {
 public:
  DescribingWorker(std::unique_ptr<BuildWorker> worker,
                   v1::DescribeRequest host, std::function<bool()> cancelled)
      : worker_(std::move(worker)),
        host_(std::move(host)),
        cancelled_(std::move(cancelled)) {}

  absl::StatusOr<v1::Description> Describe(
      const v1::DescribeRequest& device) override;

 private:
  const std::unique_ptr<BuildWorker> worker_;
  const v1::DescribeRequest host_;
  const std::function<bool()> cancelled_;
};

// This board's build worker, for questions.
std::unique_ptr<BuildWorker> SpawnedBuildWorker(
    const RunnerOptions& options, std::shared_ptr<SpawnerClient> spawner);

// What this board's build worker builds for.
absl::StatusOr<v1::BuilderReach> AskReach(BuildWorker& worker);

// Starts a run worker for every question.
class SpawnedRunWorkers : public RunWorkerInfo {
 public:
  SpawnedRunWorkers(const RunnerOptions& options,
                    std::shared_ptr<SpawnerClient> spawner);

  absl::StatusOr<v1::RunResponse> Ask(const v1::RunRequest& request,
                                      const DriverNeeds& needs,
                                      const std::string& cpu_list) override;

 private:
  RunWorkerOptions options_;
  const std::shared_ptr<SpawnerClient> spawner_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SPAWNED_WORKERS_H_
