// The agent's side of a build worker: started when first needed, asked one
// thing at a time, replaced after a crash or a limit.
//
// Not thread-safe, except Abort: one client per build thread.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_BUILD_CLIENT_H_
#define REGATTA_DEVICE_AGENT_MEASURE_BUILD_CLIENT_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device_agent/measure/build_worker.h"
#include "device_agent/spawner/spawner_client.h"

namespace regatta {

struct BuildWorkerOptions {
  std::string program;                   // path of the worker
  std::vector<std::string> exec_prefix;  // before it
  std::string cpu_list;
  int64_t limit_ms = 60'000;  // of one request
  int64_t memory_bytes = int64_t{4} << 30;
};

class BuildClient : public BuildWorker {
 public:
  BuildClient(BuildWorkerOptions options,
              std::shared_ptr<SpawnerClient> spawner);

  // A worker that dies is replaced and the request asked once more, since what
  // came before or the host may have killed it. A fresh one that dies too, or
  // one that exceeds a limit, is answered as a BuildFailure (JudgeBuildWorker),
  // like what the worker itself reports. An error means that no worker could be
  // started or that the answer makes no sense: the board's fault.
  absl::StatusOr<Reply> Call(v1::BuildRequest request,
                             const std::function<bool()>& cancelled) override;
  bool on_board() const override { return true; }
  void Abort() override;

 private:
  absl::Status StartWorker();
  // `died` is set when the worker ended, and not at our hands.
  absl::StatusOr<Reply> CallOnce(v1::BuildRequest request, bool* died);
  Reply Ended(bool timed_out, bool* died);

  const BuildWorkerOptions options_;
  const std::shared_ptr<SpawnerClient> spawner_;
  int64_t next_request_ = 1;
  std::mutex mutex_;  // guards the pointer against Abort
  std::unique_ptr<WorkerHandle> worker_;
};

// `program` behind `exec_prefix`, into `spawn`.
void SetCommand(const std::vector<std::string>& exec_prefix,
                const std::string& program, v1::Spawn* spawn);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_BUILD_CLIENT_H_
