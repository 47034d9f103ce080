#include "server/tracker_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "proto/keepalive.h"
#include "proto/security/credentials_service.h"
#include "proto/stream_end_client.h"
#include "regatta/v1/dispatch_service.grpc.pb.h"
#include "regatta/v1/security_service.grpc.pb.h"
#include "server/request_queue.h"

namespace regatta {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kMaxBackoff = absl::Seconds(2);
constexpr absl::Duration kCallDeadline = absl::Seconds(2);
// Results may come in bulk after an outage; the tracker limits what it queues.
constexpr int kMaxReceiveBytes = 64 << 20;
// Results that the tracker may send ahead.
constexpr int kWindowBytes = 4 << 20;
// Of a whole try to connect, handshake included. Boards wait as long
// (AgentLoopOptions::welcome_timeout): when all come at once, whoever hangs up
// before his turn waits again behind all others.
constexpr int kConnectLimitMs = 30'000;

grpc::ChannelArguments ChannelArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // No wait, in spite of its name: the limit of a try.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectLimitMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  // Plain text stays on this machine: no proxy of the environment gets it.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A tracker whose machine went away without a word.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPeerPingMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPeerPingLimitMs);
  arguments.SetInt("grpc.http2.ping_timeout_ms", kPeerPingLimitMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  return arguments;
}

}  // namespace

class TrackerClient::Impl {
 public:
  Impl(std::string address, std::string server_id,
       std::shared_ptr<TlsIdentity> tls)
      : address_(std::move(address)),
        server_id_(std::move(server_id)),
        tls_(std::move(tls)),
        channel_(Dial()) {}

  ~Impl() { Stop(); }

  void Start(Listener* listener) {
    listener_ = listener;
    thread_ = std::thread([this] { Run(); });
  }

  void Stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      if (context_ != nullptr) context_->TryCancel();
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // Dropped unless the stream stands.
  void Send(v1::DispatchRequest request) {
    {
      std::lock_guard lock(mutex_);
      if (!attached_) return;
      outgoing_.Push(std::move(request));
    }
    changed_.notify_all();
  }

  // Ends the stream once all of `outgoing_` is written.
  void EndStream() {
    {
      std::lock_guard lock(mutex_);
      if (!attached_) return;
      end_stream_ = true;
    }
    changed_.notify_all();
  }

  template <typename Service, typename Request, typename Response>
  absl::StatusOr<Response> Ask(
      grpc::Status (Service::Stub::*method)(grpc::ClientContext*,
                                            const Request&, Response*),
      const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMilliseconds(kCallDeadline));
    Response response;
    const auto stub = Service::NewStub(channel());
    const grpc::Status status =
        (stub.get()->*method)(&context, request, &response);
    if (status.ok()) return response;
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
        status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
      // The codes are the same numbers.
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          status.error_message());
    }
    return absl::UnavailableError(
        absl::StrCat("the tracker at ", address_,
                     " does not answer: ", status.error_message()));
  }

 private:
  using Stream =
      grpc::ClientReaderWriter<v1::DispatchRequest, v1::DispatchEvent>;

  std::shared_ptr<grpc::Channel> Dial() const {
    return grpc::CreateCustomChannel(
        address_, MakeChannelCredentials(tls_, {Role::kTracker}),
        ChannelArguments());
  }

  std::shared_ptr<grpc::Channel> channel() {
    std::lock_guard lock(mutex_);
    return channel_;
  }

  void Run() {
    absl::Duration backoff = kFirstBackoff;
    bool reported = false;
    while (true) {
      // With certificates, a new connection takes the one of today.
      if (tls_ != nullptr) {
        std::shared_ptr<grpc::Channel> fresh = Dial();
        std::lock_guard lock(mutex_);
        channel_ = std::move(fresh);
      }
      const grpc::Status status = OneStream();
      std::unique_lock lock(mutex_);
      if (was_attached_) {
        backoff = kFirstBackoff;
        reported = false;
      }
      if (stopping_) return;
      if (!reported) {
        LOG(kWarning) << "no connection to the tracker at " << address_ << ": "
                      << status.error_message() << "; trying again";
        reported = true;
      }
      changed_.wait_for(lock, absl::ToChronoMilliseconds(backoff),
                        [this] { return stopping_; });
      if (stopping_) return;
      backoff = std::min(backoff * 2, kMaxBackoff);
    }
  }

  // Opens a stream and serves it to its end.
  grpc::Status OneStream() {
    grpc::ClientContext context;
    {
      std::lock_guard lock(mutex_);
      was_attached_ = false;
      if (stopping_) return grpc::Status::CANCELLED;
      context_ = &context;
    }
    const auto stub = v1::DispatchService::NewStub(channel());
    auto stream = stub->Dispatch(&context);
    v1::DispatchRequest attach;
    attach.mutable_attach()->set_server_id(server_id_);
    if (stream->Write(attach)) {
      std::thread writer([this, &stream] { WriteAll(stream.get()); });
      v1::DispatchEvent event;
      while (stream->Read(&event)) Handle(event);
      {
        std::lock_guard lock(mutex_);
        attached_ = false;
        stream_ended_ = true;
      }
      changed_.notify_all();
      writer.join();
      if (was_attached_) listener_->OnDetached();
    }
    {
      std::lock_guard lock(mutex_);
      context_ = nullptr;
      stream_ended_ = end_stream_ = false;
      outgoing_.Clear();
    }
    return FinishStream(*stream, context);
  }

  void WriteAll(Stream* stream) {
    while (true) {
      v1::DispatchRequest request;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] {
          return stream_ended_ || end_stream_ || !outgoing_.empty();
        });
        if (stream_ended_) return;
        if (outgoing_.empty()) {
          context_->TryCancel();
          return;
        }
        request = outgoing_.Pop();
      }
      // A stream that cannot be written to ends its reads too.
      if (!stream->Write(request)) return;
    }
  }

  void Handle(v1::DispatchEvent& event) {
    switch (event.event_case()) {
      case v1::DispatchEvent::kAttached: {
        std::lock_guard lock(mutex_);
        attached_ = was_attached_ = true;
      }
        LOG(kInfo) << "attached to the tracker at " << address_;
        listener_->OnAttached(event.attached());
        break;
      case v1::DispatchEvent::kResults: {
        auto* results = event.mutable_results()->mutable_results();
        listener_->OnResults({std::make_move_iterator(results->begin()),
                              std::make_move_iterator(results->end())});
        break;
      }
      case v1::DispatchEvent::kFleetChange:
        listener_->OnFleetChange(event.fleet_change());
        break;
      case v1::DispatchEvent::kWaitReport:
        listener_->OnWaitReport(event.wait_report());
        break;
      case v1::DispatchEvent::EVENT_NOT_SET:
        break;  // of a newer tracker: nothing that this server knows
    }
  }

  const std::string address_;
  const std::string server_id_;
  const std::shared_ptr<TlsIdentity> tls_;
  Listener* listener_ = nullptr;
  std::thread thread_;

  std::mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_;  // of the latest stream
  std::condition_variable changed_;
  bool stopping_ = false;
  bool attached_ = false;                   // the stream stands
  bool was_attached_ = false;               // the latest stream did
  bool stream_ended_ = false;               // for its writer
  bool end_stream_ = false;                 // to be ended by its writer
  grpc::ClientContext* context_ = nullptr;  // of the stream
  RequestQueue outgoing_;
};

TrackerClient::TrackerClient(std::string address, std::string server_id,
                             std::shared_ptr<TlsIdentity> tls)
    : impl_(std::make_unique<Impl>(std::move(address), std::move(server_id),
                                   std::move(tls))) {}

TrackerClient::~TrackerClient() = default;

void TrackerClient::Start(Listener* listener) { impl_->Start(listener); }

void TrackerClient::Stop() { impl_->Stop(); }

void TrackerClient::Submit(std::vector<v1::Work> work) {
  v1::DispatchRequest request;
  for (v1::Work& one : work) {
    *request.mutable_submit()->add_work() = std::move(one);
  }
  impl_->Send(std::move(request));
}

void TrackerClient::CancelWork(const v1::CancelWork& cancel) {
  v1::DispatchRequest request;
  *request.mutable_cancel() = cancel;
  impl_->Send(std::move(request));
}

void TrackerClient::Acknowledge(const v1::CommitAck& ack) {
  v1::DispatchRequest request;
  *request.mutable_commit_ack() = ack;
  impl_->Send(std::move(request));
}

void TrackerClient::Reattach() { impl_->EndStream(); }

void TrackerClient::OfferCanaries(const v1::Canaries& canaries) {
  v1::DispatchRequest request;
  *request.mutable_canaries() = canaries;
  impl_->Send(std::move(request));
}

void TrackerClient::AskFleet() {
  v1::DispatchRequest request;
  request.mutable_ask_fleet();
  impl_->Send(std::move(request));
}

absl::StatusOr<v1::ListDevicesResponse> TrackerClient::ListDevices() {
  return impl_->Ask<v1::DispatchService>(
      &v1::DispatchService::Stub::ListDevices, v1::ListDevicesRequest());
}

absl::StatusOr<v1::ControlDevicesResponse> TrackerClient::ControlDevices(
    const v1::ControlDevicesRequest& request) {
  return impl_->Ask<v1::DispatchService>(
      &v1::DispatchService::Stub::ControlDevices, request);
}

absl::StatusOr<v1::DeviceHistoryResponse> TrackerClient::DeviceHistory(
    const v1::DeviceHistoryRequest& request) {
  return impl_->Ask<v1::DispatchService>(
      &v1::DispatchService::Stub::DeviceHistory, request);
}

absl::StatusOr<v1::ListAuditResponse> TrackerClient::ListAudit(int64_t limit) {
  v1::ListAuditRequest request;
  request.set_limit(limit);
  return impl_->Ask<v1::AuditService>(&v1::AuditService::Stub::ListAudit,
                                      request);
}

}  // namespace regatta
