#include "tests/fleet_sim/jobs_client.h"

#include <grpcpp/grpcpp.h>

#include "base/status_macros.h"
#include "proto/security/credentials_service.h"
#include "regatta/v1/tuning_service.grpc.pb.h"

namespace regatta::fleet_sim {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(60);

absl::Status ToAbsl(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

}  // namespace

struct JobsClient::Stub {
  std::unique_ptr<v1::TuningService::Stub> service;

  // Calls a method; `wait`: until the server is there.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::TuningService::Stub::*method)(
                                    grpc::ClientContext*, const Request&,
                                    Response*),
                                const Request& request,
                                absl::Duration limit = kDeadline) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMilliseconds(limit));
    Response response;
    RETURN_IF_ERROR(
        ToAbsl((service.get()->*method)(&context, request, &response)));
    return response;
  }
};

JobsClient::JobsClient(const std::string& server,
                       std::shared_ptr<TlsIdentity> tls)
    : stub_(std::make_unique<Stub>()) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  stub_->service = v1::TuningService::NewStub(grpc::CreateCustomChannel(
      server, MakeChannelCredentials(tls, {Role::kServer}), arguments));
}

JobsClient::~JobsClient() = default;

absl::Status JobsClient::WaitReady(absl::Duration limit) {
  return stub_
      ->Call(&v1::TuningService::Stub::ListJobs, v1::ListJobsRequest(), limit)
      .status();
}

absl::StatusOr<v1::Job> JobsClient::Submit(
    const v1::SubmitJobRequest& request) {
  return stub_->Call(&v1::TuningService::Stub::SubmitJob, request);
}

absl::StatusOr<std::vector<v1::Job>> JobsClient::List() {
  ASSIGN_OR_RETURN(
      const v1::ListJobsResponse response,
      stub_->Call(&v1::TuningService::Stub::ListJobs, v1::ListJobsRequest()));
  return std::vector<v1::Job>(response.jobs().begin(), response.jobs().end());
}

absl::Status JobsClient::Cancel(int64_t job_id) {
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  return stub_->Call(&v1::TuningService::Stub::CancelJob, request).status();
}

absl::StatusOr<int64_t> JobsClient::CountDevices() {
  ASSIGN_OR_RETURN(const v1::ListDevicesResponse response,
                   stub_->Call(&v1::TuningService::Stub::ListDevices,
                               v1::ListDevicesRequest()));
  return response.devices_size();
}

}  // namespace regatta::fleet_sim
