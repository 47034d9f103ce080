// Asks a fresh run worker about its board's devices. The agent loads no driver
// itself: one may hang, crash or leave threads behind.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_DRIVER_QUESTION_H_
#define REGATTA_DEVICE_AGENT_MEASURE_DRIVER_QUESTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "device_agent/measure/run_client.h"
#include "device_agent/spawner/spawner_client.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

// The answer to `request`, which needs no descriptors. The worker's wall limit
// bounds the wait. Internal with the detail when the worker reports a failure
// or ends without an answer.
absl::StatusOr<v1::RunResponse> AskRunWorker(
    RunWorkerOptions options, std::shared_ptr<SpawnerClient> spawner,
    const v1::RunRequest& request);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_DRIVER_QUESTION_H_
