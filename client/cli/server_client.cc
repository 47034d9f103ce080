#include "client/cli/server_client.h"

#include <grpcpp/grpcpp.h>

#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/status_macros.h"
#include "client/cli/channel_client.h"
#include "proto/stream_end_client.h"
#include "regatta/v1/security_service.grpc.pb.h"
#include "regatta/v1/tuning_service.grpc.pb.h"

namespace regatta::cli {
namespace {

// A stream that broke, or a server that is going down: worth another try.
// Everything else is an answer.
bool MayComeBack(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
      return true;
    default:
      return false;
  }
}

}  // namespace

struct ServerClient::Impl {
  explicit Impl(ServerAddress where)
      : channel(std::move(where)),
        stub(v1::TuningService::NewStub(channel.get())) {}

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::TuningService::Stub::*method)(
                                    grpc::ClientContext*, const Request&,
                                    Response*),
                                const Request& request) {
    return channel.Call(*stub, method, request);
  }

  // One WatchJob stream, until it breaks, ends or `visit` has enough.
  // Sets *news once the server has said something.
  grpc::Status WatchOnce(int64_t job_id, const std::atomic<bool>& stop,
                         const std::function<bool(const v1::Job&)>& visit,
                         bool* news) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_job_id(job_id);
    auto reader = stub->WatchJob(&context, request);
    // Reading blocks; a second thread breaks it off when `stop` is set.
    std::atomic<bool> finished = false;
    std::thread canceller([&] {
      while (!finished && !stop) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      if (stop) context.TryCancel();
    });
    v1::Job job;
    bool enough = false;
    while (!enough && reader->Read(&job)) {
      *news = true;
      enough = !visit(job);
    }
    finished = true;
    canceller.join();
    if (!enough) return FinishStream(*reader, context);
    context.TryCancel();
    reader->Finish();
    return grpc::Status::OK;
  }

  ServerChannel channel;
  std::unique_ptr<v1::TuningService::Stub> stub;
};

ServerClient::ServerClient(ServerAddress address)
    : impl_(std::make_unique<Impl>(std::move(address))) {}
ServerClient::~ServerClient() = default;

absl::StatusOr<v1::Job> ServerClient::SubmitJob(
    const v1::SubmitJobRequest& request) {
  return impl_->Call(&v1::TuningService::Stub::SubmitJob, request);
}

absl::StatusOr<v1::Job> ServerClient::GetJob(int64_t job_id) {
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  return impl_->Call(&v1::TuningService::Stub::GetJob, request);
}

absl::StatusOr<v1::ListJobsResponse> ServerClient::ListJobs() {
  return impl_->Call(&v1::TuningService::Stub::ListJobs, v1::ListJobsRequest());
}

absl::StatusOr<v1::Job> ServerClient::CancelJob(int64_t job_id) {
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  return impl_->Call(&v1::TuningService::Stub::CancelJob, request);
}

absl::StatusOr<v1::Job> ServerClient::ResumeJob(int64_t job_id) {
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  return impl_->Call(&v1::TuningService::Stub::ResumeJob, request);
}

absl::StatusOr<v1::BestAnswer> ServerClient::Best(
    const v1::BestRequest& request) {
  return impl_->Call(&v1::TuningService::Stub::Best, request);
}

absl::StatusOr<v1::ListDevicesResponse> ServerClient::ListDevices() {
  return impl_->Call(&v1::TuningService::Stub::ListDevices,
                     v1::ListDevicesRequest());
}

absl::StatusOr<v1::ListAuditResponse> ServerClient::ListAudit(int64_t limit) {
  const auto stub = v1::AuditService::NewStub(impl_->channel.get());
  v1::ListAuditRequest request;
  request.set_limit(limit);
  return impl_->channel.Call(*stub, &v1::AuditService::Stub::ListAudit,
                             request);
}

absl::StatusOr<v1::ControlDevicesResponse> ServerClient::ControlDevices(
    const v1::ControlDevicesRequest& request) {
  return impl_->Call(&v1::TuningService::Stub::ControlDevices, request);
}

absl::StatusOr<v1::DeviceHistoryResponse> ServerClient::DeviceHistory(
    const v1::DeviceHistoryRequest& request) {
  return impl_->Call(&v1::TuningService::Stub::DeviceHistory, request);
}

absl::Status ServerClient::ListRecords(
    const v1::ListRecordsRequest& request,
    const std::function<void(const v1::Record&)>& visit) {
  grpc::ClientContext context;
  auto reader = impl_->stub->ListRecords(&context, request);
  v1::ListRecordsResponse page;
  while (reader->Read(&page)) {
    for (const v1::Record& record : page.records()) visit(record);
  }
  return impl_->channel.FromGrpc(FinishStream(*reader, context));
}

absl::Status ServerClient::WatchJob(
    int64_t job_id, const std::atomic<bool>& stop, absl::Duration patience,
    const std::function<bool(const v1::Job&)>& visit) {
  // A job may have no news for hours: patience begins when the stream breaks.
  std::optional<SteadyTime> broken_since;
  while (true) {
    bool news = false;
    const grpc::Status status = impl_->WatchOnce(job_id, stop, visit, &news);
    if (status.ok()) return absl::OkStatus();
    if (stop) return absl::CancelledError("stopped watching");
    const SteadyTime now = RealClock().Steady();
    if (news || !broken_since) broken_since = now;
    if (!MayComeBack(status) || now - *broken_since > patience) {
      return impl_->channel.FromGrpc(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

absl::StatusOr<std::unique_ptr<ServerClient>> ConnectServer(
    const ServerFlags& flags) {
  ASSIGN_OR_RETURN(ServerAddress address, ReachServer(flags));
  return std::make_unique<ServerClient>(std::move(address));
}

}  // namespace regatta::cli
