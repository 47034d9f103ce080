#include "device_agent/measure/build_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "device_agent/measure/worker_ending.h"

namespace regatta {
namespace {

constexpr int kBuildTasks = 64;

BuildClient::Reply Failure(const Ending& ending) {
  BuildClient::Reply reply;
  reply.response.mutable_failure()->set_outcome(ending.outcome);
  reply.response.mutable_failure()->set_detail(ending.detail);
  return reply;
}

}  // namespace

void SetCommand(const std::vector<std::string>& exec_prefix,
                const std::string& program, v1::Spawn* spawn) {
  if (exec_prefix.empty()) {
    spawn->set_program(program);
    return;
  }
  spawn->set_program(exec_prefix[0]);
  for (size_t i = 1; i < exec_prefix.size(); ++i) {
    spawn->add_arguments(exec_prefix[i]);
  }
  spawn->add_arguments(program);
}

BuildClient::BuildClient(BuildWorkerOptions options,
                         std::shared_ptr<SpawnerClient> spawner)
    : options_(std::move(options)), spawner_(std::move(spawner)) {}

absl::Status BuildClient::StartWorker() {
  if (worker_ != nullptr) {
    // One that died since the last request is no fault of the next.
    if (!worker_->WaitExited(absl::ZeroDuration()).ok()) {
      return absl::OkStatus();
    }
    std::lock_guard<std::mutex> lock(mutex_);
    worker_.reset();
  }
  v1::Spawn spawn;
  SetCommand(options_.exec_prefix, options_.program, &spawn);
  spawn.set_role("build");
  spawn.set_cpu_list(options_.cpu_list);
  spawn.set_memory_limit_bytes(options_.memory_bytes);
  spawn.set_max_tasks(kBuildTasks);
  ASSIGN_OR_RETURN(std::unique_ptr<WorkerHandle> worker,
                   spawner_->Spawn(spawn));
  std::lock_guard<std::mutex> lock(mutex_);
  worker_ = std::move(worker);
  return absl::OkStatus();
}

void BuildClient::Abort() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (worker_ != nullptr) worker_->Kill();
}

BuildClient::Reply BuildClient::Ended(bool timed_out, bool* died) {
  if (timed_out) worker_->Kill();
  const absl::StatusOr<v1::Exited> exited =
      worker_->WaitExited(kWorkerEndLimit);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    worker_.reset();
  }
  if (!exited.ok()) {
    return Failure({v1::OUTCOME_DEVICE_FAULT,
                    absl::StrCat("build worker: ", exited.status().message())});
  }
  if (timed_out && !exited->leftovers()) {
    return Failure({v1::OUTCOME_TIMED_OUT,
                    absl::StrFormat("the build took more than %.0f s",
                                    options_.limit_ms / 1e3)});
  }
  *died =
      !exited->leftovers() && (exited->reason() == v1::EXIT_REASON_EXITED ||
                               exited->reason() == v1::EXIT_REASON_SIGNALLED);
  return Failure(JudgeBuildWorker(*exited, options_.memory_bytes));
}

absl::StatusOr<BuildClient::Reply> BuildClient::Call(
    v1::BuildRequest request, const std::function<bool()>& cancelled) {
  bool died = false;
  ASSIGN_OR_RETURN(Reply reply, CallOnce(request, &died));
  if (!died || (cancelled && cancelled())) return reply;
  LOG(kWarning) << reply.response.failure().detail()
                << "; the same is asked of another";
  return CallOnce(std::move(request), &died);
}

absl::StatusOr<BuildClient::Reply> BuildClient::CallOnce(
    v1::BuildRequest request, bool* died) {
  RETURN_IF_ERROR(Annotate(StartWorker(), "build worker"));
  request.set_request_id(next_request_++);
  std::vector<UniqueFd> files;
  if (!worker_->channel().Send(request).ok()) return Ended(false, died);
  const absl::StatusOr<v1::BuildResponse> response =
      worker_->channel().ReceiveMessage<v1::BuildResponse>(
          &files, static_cast<int>(options_.limit_ms));
  if (!response.ok()) {
    return Ended(absl::IsDeadlineExceeded(response.status()), died);
  }
  if (response->request_id() != request.request_id()) {
    Abort();
    return absl::InternalError(absl::StrCat(
        "the build worker answered request ", response->request_id(),
        " when asked ", request.request_id()));
  }
  Reply reply;
  reply.response = *response;
  const bool has_file =
      reply.response.has_module() || reply.response.has_reference();
  if (has_file && files.size() != 1) {
    return absl::InternalError("the build worker sent no module");
  }
  if (has_file) reply.file = std::move(files[0]);
  return reply;
}

}  // namespace regatta
