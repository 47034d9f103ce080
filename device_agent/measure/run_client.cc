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
  for (const std::string& argument : needs.arguments) {
    spawn.add_arguments(argument);
  }
  spawn.set_reserves_addresses(needs.reserves_addresses);
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
  KeptWorker worker;
  ASSIGN_OR_RETURN(worker.handle,
                   spawner->Spawn(SpawnOf(options), options.held));
  // A worker that is already gone shows when its answer is waited for.
  worker.handle->channel().Send(request, {module, reference}).IgnoreError();
  return std::unique_ptr<RunClient>(
      new RunClient(std::move(options), std::move(worker), nullptr));
}

absl::StatusOr<std::unique_ptr<RunClient>> RunClient::StartKept(
    RunWorkerOptions options, WorkerPool& pool, v1::RunRequest request,
    int module, int reference) {
  v1::Spawn spawn = SpawnOf(options);
  // It lives for many trials, each with a limit of its own.
  spawn.clear_wall_limit_ms();
  ASSIGN_OR_RETURN(KeptWorker worker, pool.Take(spawn, options.needs.start_ms));
  request.set_keep_worker(true);
  std::vector<int> descriptors = {module, reference};
  descriptors.insert(descriptors.end(), options.held.begin(),
                     options.held.end());
  worker.handle->channel().Send(request, descriptors).IgnoreError();
  return std::unique_ptr<RunClient>(
      new RunClient(std::move(options), std::move(worker), &pool));
}

RunClient::RunClient(RunWorkerOptions options, KeptWorker worker,
                     WorkerPool* pool)
    : options_(std::move(options)), pool_(pool), worker_(std::move(worker)) {
  if (pool_ != nullptr) {
    wall_limit_.emplace(handle().pid(),
                        absl::Milliseconds(options_.wall_limit_ms),
                        RealClock().Steady());
  }
}

RunClient::~RunClient() {
  if (pool_ != nullptr && timed_ && !killed_ && !ending_.has_value()) {
    pool_->GiveBack(std::move(worker_));
  }
}

PatientLimit RunClient::LimitOf(int64_t limit_ms) const {
  if (limit_ms == 0 && wall_limit_.has_value()) return *wall_limit_;
  // Where only the spawner's wall limit counts, in case it is stuck.
  const int64_t backstop_ms =
      PatientLimit::kFactor * options_.wall_limit_ms + kWallBackstopMs;
  return PatientLimit(worker_.handle->pid(),
                      absl::Milliseconds(limit_ms > 0 ? limit_ms : backstop_ms),
                      RealClock().Steady());
}

std::optional<v1::RunResponse> RunClient::Wait(
    v1::RunResponse::ResponseCase wanted, int64_t limit_ms) {
  if (ending_.has_value()) return std::nullopt;
  PatientLimit limit = LimitOf(limit_ms);
  if (limit_ms == 0 && pool_ != nullptr) limit_ms = options_.wall_limit_ms;
  PatientLimit::State state = PatientLimit::State::kWithin;
  absl::StatusOr<v1::RunResponse> response = absl::UnknownError("");
  do {
    const absl::Duration left = limit.deadline() - RealClock().Steady();
    response = handle().channel().ReceiveMessage<v1::RunResponse>(
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
    handle().Kill();
    ending_ = state == PatientLimit::State::kStarved
                  ? JudgeStarved(limit.starved_ns(), limit_ms, stage_)
                  : Ending{v1::OUTCOME_TIMED_OUT,
                           absl::StrFormat("killed after %.1f s %s",
                                           limit_ms / 1e3, stage_)};
  } else if (response.ok() || !absl::IsOutOfRange(response.status())) {
    // Its memory may be the candidate's work by now.
    handle().Kill();
    ending_ = {v1::OUTCOME_CRASHED,
               absl::StrCat("the run worker gave no sensible answer ", stage_)};
  } else {
    Judge();
  }
  return std::nullopt;
}

void RunClient::Judge() {
  ended_ = true;
  const absl::StatusOr<v1::Exited> exited =
      handle().WaitExited(kWorkerEndLimit);
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
  timed_ = true;
  return response->timed();
}

std::optional<v1::Block> RunClient::TimeBlock(int64_t limit_ms) {
  // A worker that is gone shows in the wait.
  handle().channel().Send(v1::TimeBlock()).IgnoreError();
  auto response = Wait(v1::RunResponse::kBlock, limit_ms);
  if (!response.has_value()) return std::nullopt;
  return response->block();
}

std::optional<v1::Timed> RunClient::FinishInterleaved(int64_t limit_ms) {
  v1::TimeBlock last;
  last.set_finish(true);
  handle().channel().Send(last).IgnoreError();
  return WaitTimed(limit_ms);
}

void RunClient::End() {
  if (ended_) return;
  ended_ = true;
  if (pool_ != nullptr && timed_ && !ending_.has_value()) return;
  absl::StatusOr<v1::Exited> exited = handle().WaitExited(kWorkerEndLimit);
  if (!exited.ok()) {
    handle().Kill();
    exited = handle().WaitExited(kWorkerEndLimit);
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
