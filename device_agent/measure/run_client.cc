#include "device_agent/measure/run_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "device_agent/measure/build_client.h"
#include "device_agent/spawner/run_delay.h"

namespace regatta {
namespace {

// Beyond what the spawner allows.
constexpr int64_t kBackstopMs = 10'000;
constexpr absl::Duration kEndLimit = absl::Seconds(5);

}  // namespace

v1::Spawn SpawnOf(const RunWorkerOptions& options) {
  const DriverNeeds& needs = options.needs;
  v1::Spawn spawn;
  SetCommand(options.exec_prefix, options.program, &spawn);
  spawn.set_role("run");
  spawn.set_cpu_list(options.cpu_list);
  spawn.set_wall_limit_ms(options.wall_limit_ms);
  spawn.set_memory_limit_bytes(options.memory_bytes);
  spawn.set_max_tasks(needs.max_tasks);
  spawn.set_scratch_bytes(needs.scratch_bytes);
  for (const std::string& file : needs.writable) spawn.add_writable(file);
  for (const std::string& variable : needs.environment) {
    spawn.add_environment(variable);
  }
  return spawn;
}

std::string SandboxOf(const DriverNeeds& needs, const SpawnerClient& spawner) {
  std::vector<std::string> features = spawner.sandbox();
  if (needs.driver) std::erase(features, kTightFeature);
  return absl::StrJoin(features, ",");
}

absl::StatusOr<std::unique_ptr<RunClient>> RunClient::Start(
    RunWorkerOptions options, std::shared_ptr<SpawnerClient> spawner,
    const v1::RunRequest& request, int module, int reference) {
  ASSIGN_OR_RETURN(std::unique_ptr<WorkerHandle> worker,
                   spawner->Spawn(SpawnOf(options), options.held));
  // A worker that is already gone shows when its answer is waited for.
  worker->channel().Send(request, {module, reference}).IgnoreError();
  return std::unique_ptr<RunClient>(
      new RunClient(std::move(options), std::move(worker)));
}

std::optional<v1::RunResponse> RunClient::Wait(
    v1::RunResponse::ResponseCase wanted, int64_t limit_ms) {
  if (ending_.has_value()) return std::nullopt;
  // Where only the wall limit counts, in case the spawner is stuck.
  PatientLimit limit(
      worker_->pid(),
      absl::Milliseconds(limit_ms > 0
                             ? limit_ms
                             : PatientLimit::kFactor * options_.wall_limit_ms +
                                   kBackstopMs),
      RealClock().Steady());
  PatientLimit::State state = PatientLimit::State::kWithin;
  absl::StatusOr<v1::RunResponse> response = absl::UnknownError("");
  do {
    const absl::Duration left = limit.deadline() - RealClock().Steady();
    response = worker_->channel().ReceiveMessage<v1::RunResponse>(
        nullptr, static_cast<int>(
                     std::max<int64_t>(1, absl::ToInt64Milliseconds(absl::Ceil(
                                              left, absl::Milliseconds(1))))));
    if (!absl::IsDeadlineExceeded(response.status())) break;
    state = limit.Check(RealClock().Steady());
  } while (state == PatientLimit::State::kWithin);
  if (response.ok() && response->response_case() == wanted) {
    return *std::move(response);
  }
  if (response.ok() && response->has_failure()) {
    ending_ = {response->failure().outcome(), response->failure().detail()};
  } else if (limit_ms > 0 && absl::IsDeadlineExceeded(response.status())) {
    worker_->Kill();
    ending_ = state == PatientLimit::State::kStarved
                  ? JudgeStarved(limit.starved_ns(), limit_ms, stage_)
                  : Ending{v1::OUTCOME_TIMED_OUT,
                           absl::StrFormat("killed after %.1f s %s",
                                           limit_ms / 1e3, stage_)};
  } else if (response.ok() || !absl::IsOutOfRange(response.status())) {
    // Its memory may be the candidate's work by now.
    worker_->Kill();
    ending_ = {v1::OUTCOME_CRASHED,
               absl::StrCat("the run worker gave no sensible answer ", stage_)};
  } else {
    Judge();
  }
  return std::nullopt;
}

void RunClient::Judge() {
  ended_ = true;
  const absl::StatusOr<v1::Exited> exited = worker_->WaitExited(kEndLimit);
  ending_ = exited.ok()
                ? JudgeRunWorker(*exited, stage_, options_.wall_limit_ms,
                                 options_.memory_bytes)
                : Ending{v1::OUTCOME_DEVICE_FAULT,
                         std::string(exited.status().message())};
}

std::optional<v1::Verified> RunClient::WaitVerified(int64_t limit_ms) {
  auto response = Wait(v1::RunResponse::kVerified, limit_ms);
  if (!response.has_value()) return std::nullopt;
  stage_ = "while being timed";
  return response->verified();
}

std::optional<v1::Timed> RunClient::WaitTimed(int64_t limit_ms) {
  auto response = Wait(v1::RunResponse::kTimed, limit_ms);
  if (!response.has_value()) return std::nullopt;
  return response->timed();
}

std::optional<v1::Block> RunClient::TimeBlock(int64_t limit_ms) {
  // A worker that is gone shows in the wait.
  worker_->channel().Send(v1::TimeBlock()).IgnoreError();
  auto response = Wait(v1::RunResponse::kBlock, limit_ms);
  if (!response.has_value()) return std::nullopt;
  return response->block();
}

std::optional<v1::Timed> RunClient::FinishInterleaved(int64_t limit_ms) {
  v1::TimeBlock last;
  last.set_finish(true);
  worker_->channel().Send(last).IgnoreError();
  return WaitTimed(limit_ms);
}

void RunClient::End() {
  if (ended_) return;
  ended_ = true;
  absl::StatusOr<v1::Exited> exited = worker_->WaitExited(kEndLimit);
  if (!exited.ok()) {
    worker_->Kill();
    exited = worker_->WaitExited(kEndLimit);
  }
  const bool gone = exited.ok() && !exited->leftovers();
  if (!gone) {
    ending_ = {v1::OUTCOME_DEVICE_FAULT,
               "something of the run worker outlived being killed"};
  } else if (!ending_.has_value() && exited->code() != 0) {
    // All answers were given, so this is no word about the candidate's speed,
    // but code that breaks its process at exit is broken.
    ending_ = JudgeRunWorker(*exited, "after its last answer",
                             options_.wall_limit_ms, options_.memory_bytes);
  }
}

}  // namespace regatta
