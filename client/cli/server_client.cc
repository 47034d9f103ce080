#include "client/cli/server_client.h"

#include <grpcpp/grpcpp.h>

#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "regatta/v1/tuning_service.grpc.pb.h"

namespace regatta::cli {
namespace {

constexpr auto kUnaryLimit = std::chrono::seconds(10);

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetMaxReceiveMessageSize(64 << 20);
  // A proxy of the environment has no business between us and our server.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

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
      : address(std::move(where)),
        channel(MakeChannel(address.address)),
        stub(v1::TuningService::NewStub(channel)) {}

  absl::Status FromGrpc(const grpc::Status& status) const {
    if (status.ok()) return absl::OkStatus();
    const auto code = static_cast<absl::StatusCode>(status.error_code());
    // A server that is there says Unavailable, too, while it has no tracker.
    const bool connected =
        channel->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
    if ((code == absl::StatusCode::kUnavailable && !connected) ||
        code == absl::StatusCode::kDeadlineExceeded) {
      return absl::Status(
          code, absl::StrCat("the server at ", address.address, " (from ",
                             address.source,
                             ") does not answer: ", status.error_message(),
                             ". Start one with `regatta up`, or name another "
                             "with --server HOST:PORT"));
    }
    return absl::Status(code, status.error_message());
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::TuningService::Stub::*method)(
                                    grpc::ClientContext*, const Request&,
                                    Response*),
                                const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kUnaryLimit);
    Response response;
    RETURN_IF_ERROR(
        FromGrpc((stub.get()->*method)(&context, request, &response)));
    return response;
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
    if (!enough) return reader->Finish();
    context.TryCancel();
    reader->Finish();
    return grpc::Status::OK;
  }

  ServerAddress address;
  std::shared_ptr<grpc::Channel> channel;
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

absl::StatusOr<v1::BestAnswer> ServerClient::Best(
    const v1::BestRequest& request) {
  return impl_->Call(&v1::TuningService::Stub::Best, request);
}

absl::StatusOr<v1::ListDevicesResponse> ServerClient::ListDevices() {
  return impl_->Call(&v1::TuningService::Stub::ListDevices,
                     v1::ListDevicesRequest());
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
  return impl_->FromGrpc(reader->Finish());
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
      return impl_->FromGrpc(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

absl::StatusOr<std::unique_ptr<ServerClient>> ConnectServer(
    std::string_view flag) {
  ASSIGN_OR_RETURN(ServerAddress address, FindServer(flag));
  return std::make_unique<ServerClient>(std::move(address));
}

}  // namespace regatta::cli
