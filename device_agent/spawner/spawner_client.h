// The agent's side of the spawner: starts it, and through it workers.
//
// Thread-safe. Start the client before the process has a gRPC channel: nothing
// else forks later.
#ifndef REGATTA_DEVICE_AGENT_SPAWNER_SPAWNER_CLIENT_H_
#define REGATTA_DEVICE_AGENT_SPAWNER_SPAWNER_CLIENT_H_

#include <sys/types.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "device_agent/spawner/frame_channel.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

class SpawnerClient;

// Killing takes at most 2 s (Worker::kKillLimit); a spawner that has not said
// by then how a worker ended is in trouble itself.
inline constexpr absl::Duration kWorkerEndLimit = absl::Seconds(5);
// How long beyond a wall limit, which the spawner keeps, an answer is waited
// for, in case it is stuck.
inline constexpr int64_t kWallBackstopMs = 10'000;

// One worker. Killed, with all that it started, when this is destroyed.
class WorkerHandle {
 public:
  ~WorkerHandle();
  WorkerHandle(const WorkerHandle&) = delete;

  // To the worker's descriptor 3; the peer closes when the worker dies.
  FrameChannel& channel() { return channel_; }
  pid_t pid() const { return pid_; }
  // From any thread; returns at once.
  void Kill();
  // Waits until the worker and everything below it is gone. DeadlineExceeded
  // when that takes longer; Unavailable when the spawner is gone.
  absl::StatusOr<v1::Exited> WaitExited(absl::Duration limit);

 private:
  friend class SpawnerClient;
  // What the spawner said about one Spawn request. Guarded by the client's
  // mutex.
  struct Fate {
    std::string role;
    std::optional<v1::Started> started;
    std::optional<v1::Exited> exited;
    std::string error;
  };
  WorkerHandle(std::shared_ptr<SpawnerClient> client, FrameChannel channel,
               std::shared_ptr<Fate> fate, v1::Started started);

  std::shared_ptr<SpawnerClient> client_;
  FrameChannel channel_;
  std::shared_ptr<Fate> fate_;
  const int64_t worker_;
  const pid_t pid_;
};

// The event that a frame of the spawner holds. One that cannot be parsed ends
// no more than the worker it is about: it becomes an Exited without a reason or
// an error, of the request it names (0: none).
v1::SpawnEvent ReadSpawnEvent(const std::string& bytes);

class SpawnerClient : public std::enable_shared_from_this<SpawnerClient> {
 public:
  // Starts `program` (regatta-spawner). NotFound when it is not there;
  // Unavailable when it does not come up. `without`: sandbox features that it
  // shall not use, for tests. `exec_prefix`: words before it, where programs of
  // this machine's kind run only behind an emulator. `answers_within`: a
  // spawner that takes longer to start a worker stands still; it is killed.
  static absl::StatusOr<std::shared_ptr<SpawnerClient>> Start(
      const std::string& program, const std::vector<std::string>& without = {},
      const std::vector<std::string>& exec_prefix = {},
      absl::Duration answers_within = absl::Seconds(20));
  // All workers die with it. Returns when the spawner is gone or, since it
  // stays where something outlives its killing, soon after it let go.
  ~SpawnerClient();
  SpawnerClient(const SpawnerClient&) = delete;

  // Features in force, sorted (sandbox/sandbox.h explains them).
  const std::vector<std::string>& sandbox() const { return sandbox_; }
  std::string SandboxText() const;
  // FailedPrecondition naming those of `required` that are not in force.
  absl::Status Require(const std::vector<std::string>& required) const;
  bool alive() const;
  // Workers so far, by role ("build", "run").
  struct WorkerCounts {
    int64_t started = 0;
    std::map<v1::ExitReason, int64_t> exited;
  };
  std::map<std::string, WorkerCounts> worker_counts() const;
  pid_t pid() const { return pid_; }

  // Descriptors beside the worker's socket in the frame that starts it.
  static constexpr int kMaxHeld = FrameChannel::kMaxDescriptors - 1;

  // Starts a worker. `held`: descriptors that the spawner keeps open until the
  // worker is gone (see worker.proto); InvalidArgument when they are more than
  // kMaxHeld. Internal carries the spawner's reason; Unavailable when the
  // spawner is gone.
  absl::StatusOr<std::unique_ptr<WorkerHandle>> Spawn(
      const v1::Spawn& spawn, absl::Span<const int> held = {});

 private:
  friend class WorkerHandle;
  SpawnerClient(FrameChannel channel, pid_t pid, absl::Duration answers_within)
      : channel_(std::move(channel)),
        pid_(pid),
        answers_within_(answers_within) {}
  void ReadEvents();
  absl::Status SendRequest(const v1::SpawnRequest& request,
                           absl::Span<const int> descriptors);

  FrameChannel channel_;
  const pid_t pid_;
  const absl::Duration answers_within_;
  std::vector<std::string> sandbox_;
  std::mutex send_mutex_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool alive_ = true;
  int64_t next_request_ = 1;
  std::map<int64_t, std::shared_ptr<WorkerHandle::Fate>> fates_;  // by request
  std::map<std::string, WorkerCounts> counts_;
  std::thread reader_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SPAWNER_SPAWNER_CLIENT_H_
