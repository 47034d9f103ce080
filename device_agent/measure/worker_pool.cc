#include "device_agent/measure/worker_pool.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "device_agent/measure/worker_ending.h"

namespace regatta {
namespace {

// To say that its device still works; a context is there already.
constexpr int64_t kPingMs = 2'000;

v1::RunRequest Staying(v1::RunRequest prepare) {
  prepare.set_keep_worker(true);
  return prepare;
}

}  // namespace

WorkerPool::WorkerPool(v1::RunRequest prepare,
                       std::shared_ptr<SpawnerClient> spawner,
                       const Clock* clock)
    : prepare_(Staying(std::move(prepare))),
      spawner_(std::move(spawner)),
      clock_(clock) {}

WorkerPool::~WorkerPool() {
  for (KeptWorker& worker : idle_) worker.handle->Kill();
  for (KeptWorker& worker : idle_) Retire(std::move(worker));
}

void WorkerPool::Retire(KeptWorker worker) {
  worker.handle->Kill();
  worker.handle->WaitExited(kWorkerEndLimit).IgnoreError();
}

bool WorkerPool::Fresh(const KeptWorker& worker) const {
  return worker.trials < kMaxTrials &&
         clock_->Steady() - worker.started < kMaxAge;
}

absl::StatusOr<KeptWorker> WorkerPool::Take(const v1::Spawn& spawn,
                                            int64_t start_ms) {
  const std::string wanted = spawn.SerializeAsString();
  for (;;) {
    std::optional<KeptWorker> idle;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto found =
          std::find_if(idle_.begin(), idle_.end(),
                       [&](const KeptWorker& w) { return w.spawn == wanted; });
      if (found != idle_.end()) {
        idle = std::move(*found);
        idle_.erase(found);
      }
    }
    if (!idle.has_value()) return Start(spawn, start_ms);
    const absl::Status usable =
        Fresh(*idle) ? Prepare(*idle, kPingMs)
                     : absl::OutOfRangeError("it has done its share");
    if (usable.ok()) {
      ++idle->trials;
      return *std::move(idle);
    }
    LOG(kInfo) << "a run worker is replaced after " << idle->trials
               << " trials: " << usable.message();
    Retire(*std::move(idle));
  }
}

absl::StatusOr<KeptWorker> WorkerPool::Start(const v1::Spawn& spawn,
                                             int64_t start_ms) {
  KeptWorker worker;
  worker.spawn = spawn.SerializeAsString();
  worker.started = clock_->Steady();
  ASSIGN_OR_RETURN(worker.handle, spawner_->Spawn(spawn));
  const absl::Status prepared = Prepare(worker, start_ms);
  if (prepared.ok()) {
    worker.trials = 1;
    return worker;
  }
  // One that has closed its end is ending by itself, and says why.
  if (!absl::IsOutOfRange(prepared)) worker.handle->Kill();
  const absl::StatusOr<v1::Exited> exited =
      worker.handle->WaitExited(kWorkerEndLimit);
  if (!exited.ok() || exited->reason() != v1::EXIT_REASON_EXITED) {
    return prepared;
  }
  return absl::InternalError(JudgeRunWorker(*exited, "while starting", start_ms,
                                            spawn.memory_limit_bytes())
                                 .detail);
}

absl::Status WorkerPool::Prepare(KeptWorker& worker, int64_t limit_ms) {
  // A worker that is gone shows when its answer is waited for.
  worker.handle->channel().Send(prepare_).IgnoreError();
  const absl::StatusOr<v1::RunResponse> response =
      worker.handle->channel().ReceiveMessage<v1::RunResponse>(
          nullptr, static_cast<int>(limit_ms));
  if (absl::IsDeadlineExceeded(response.status())) {
    return absl::InternalError(absl::StrCat(
        "the run worker was not ready on its device after ", limit_ms, " ms"));
  }
  RETURN_IF_ERROR(response.status());
  if (response->has_prepared()) return absl::OkStatus();
  return absl::InternalError("the run worker gave no sensible answer");
}

void WorkerPool::GiveBack(KeptWorker worker) {
  std::optional<KeptWorker> surplus;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_front(std::move(worker));
    if (idle_.size() > kMaxIdle) {
      surplus = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (surplus.has_value()) Retire(*std::move(surplus));
}

}  // namespace regatta
