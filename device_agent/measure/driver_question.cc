#include "device_agent/measure/driver_question.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta {

absl::StatusOr<v1::RunResponse> AskRunWorker(
    RunWorkerOptions options, std::shared_ptr<SpawnerClient> spawner,
    const v1::RunRequest& request) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WorkerHandle> worker,
                   spawner->Spawn(SpawnOf(options), options.held));
  // A worker that is already gone shows when its answer is waited for.
  worker->channel().Send(request).IgnoreError();
  absl::StatusOr<v1::RunResponse> response =
      worker->channel().ReceiveMessage<v1::RunResponse>(
          nullptr, static_cast<int>(options.wall_limit_ms + kWallBackstopMs));
  // One that hung up is ending by itself, and its end says why.
  if (!response.ok() && !absl::IsOutOfRange(response.status())) worker->Kill();
  const absl::StatusOr<v1::Exited> exited = worker->WaitExited(kWorkerEndLimit);
  if (response.ok() && !response->has_failure()) return response;
  std::string detail = "no answer";
  if (response.ok()) {
    detail = response->failure().detail();
  } else if (exited.ok()) {
    detail = JudgeRunWorker(*exited, "while asking its driver",
                            options.wall_limit_ms, options.memory_bytes)
                 .detail;
  }
  return absl::InternalError(absl::StrCat("run worker: ", detail));
}

}  // namespace regatta
