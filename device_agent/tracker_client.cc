#include "device_agent/tracker_client.h"

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/keepalive.h"
#include "proto/security/credentials_service.h"
#include "proto/utf8_texts.h"
#include "regatta/v1/fleet_service.grpc.pb.h"

namespace regatta {
namespace {

constexpr int kMaxReceiveBytes = 8 << 20;
// What may wait for a tracker that does not read. The loop bounds what it sends
// without an answer, so that only a broken tracker meets this.
constexpr size_t kMaxOutboxMessages = 4096;

std::shared_ptr<grpc::Channel> NewChannel(
    const std::string& address, const std::shared_ptr<TlsIdentity>& tls) {
  grpc::ChannelArguments arguments;
  // Plain text stays on this machine: no proxy of the environment gets it.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPeerPingMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPeerPingLimitMs);
  // In later releases this one decides instead of the keepalive time-out.
  arguments.SetInt("grpc.http2.ping_timeout_ms", kPeerPingLimitMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Or a failed connection's waiting time would be inherited by the next.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  return grpc::CreateCustomChannel(
      address, MakeChannelCredentials(tls, {Role::kTracker}), arguments);
}

}  // namespace

// One call. Its owner keeps it until it is done, and drops it on a thread that
// is not gRPC's: with a channel may go the last user of gRPC's callback
// threads, which are joined then.
class TrackerClient::Stream
    : public grpc::ClientBidiReactor<v1::AgentMessage, v1::TrackerMessage> {
 public:
  Stream(const std::string& address, const std::shared_ptr<TlsIdentity>& tls,
         Callbacks callbacks)
      : secure_(tls != nullptr),
        stub_(v1::FleetService::NewStub(NewChannel(address, tls))),
        callbacks_(std::move(callbacks)) {}

  void Begin() {
    stub_->async()->Session(&context_, this);
    // Writes start from other threads until reading ends.
    AddHold();
    StartRead(&incoming_);
    StartCall();
  }

  void Send(v1::AgentMessage message) {
    std::lock_guard lock(mutex_);
    if (ended_ || closing_) return;
    // One text of others that is no UTF-8 would end the session, time and
    // again.
    MakeTextsUtf8(message);
    if (outbox_.size() >= kMaxOutboxMessages) {
      context_.TryCancel();
      return;
    }
    outbox_.push_back(std::move(message));
    if (outbox_.size() == 1) StartWrite(&outbox_.front());
  }

  // No callback begins after this returned, unless it comes from one.
  void Mute() {
    std::lock_guard lock(callback_mutex_);
    callbacks_ = {};
  }

  void Close(absl::Duration linger) {
    std::unique_lock lock(mutex_);
    if (linger > absl::ZeroDuration() && !ended_ && !closing_) {
      closing_ = true;
      if (outbox_.empty()) StartWritesDone();
      done_changed_.wait_for(lock, absl::ToChronoNanoseconds(linger),
                             [this] { return done_; });
    }
    closing_ = true;
    lock.unlock();
    context_.TryCancel();
  }

  bool WaitDone(absl::Duration limit) {
    std::unique_lock lock(mutex_);
    return done_changed_.wait_for(lock, absl::ToChronoNanoseconds(limit),
                                  [this] { return done_; });
  }

 private:
  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    outbox_.pop_front();
    if (!ok || ended_) return;
    if (!outbox_.empty()) {
      StartWrite(&outbox_.front());
    } else if (closing_) {
      StartWritesDone();
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        std::lock_guard lock(mutex_);
        ended_ = true;
      }
      RemoveHold();
      return;
    }
    heard_ = true;
    {
      std::lock_guard lock(callback_mutex_);
      if (callbacks_.on_message) callbacks_.on_message(std::move(incoming_));
    }
    incoming_.Clear();
    StartRead(&incoming_);
  }

  void OnDone(const grpc::Status& status) override {
    {
      std::lock_guard lock(callback_mutex_);
      if (callbacks_.on_closed) {
        callbacks_.on_closed(
            status.ok()
                ? absl::UnavailableError("the tracker ended the session")
                : absl::Status(
                      static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message() + Hint(status)));
      }
    }
    std::lock_guard lock(mutex_);
    done_ = true;
    done_changed_.notify_all();
  }

  // In TLS 1.3 a certificate that is refused shows as a connection that ends.
  std::string Hint(const grpc::Status& status) const {
    const bool refused =
        secure_ && !heard_ &&
        status.error_code() == grpc::StatusCode::UNAVAILABLE &&
        status.error_message().find("Socket closed") != std::string::npos;
    return refused ? " before the tracker said a word: it may not take this "
                     "certificate, revoked or not (`regatta certs list` and "
                     "`regatta audit` tell); a new token and --join replace it"
                   : "";
  }

  const bool secure_;
  bool heard_ = false;  // a message came
  const std::unique_ptr<v1::FleetService::Stub> stub_;
  grpc::ClientContext context_;
  v1::TrackerMessage incoming_;

  std::mutex callback_mutex_;
  Callbacks callbacks_;

  std::mutex mutex_;
  std::condition_variable done_changed_;
  std::deque<v1::AgentMessage> outbox_;  // the front is being written
  bool ended_ = false;    // reading ended: nothing may be started any more
  bool closing_ = false;  // nothing more is to be sent
  bool done_ = false;
};

TrackerClient::TrackerClient(std::string address,
                             std::shared_ptr<TlsIdentity> tls)
    : address_(std::move(address)), tls_(std::move(tls)) {}

TrackerClient::~TrackerClient() { Close(absl::ZeroDuration()); }

void TrackerClient::Open(Callbacks callbacks) {
  Close(absl::ZeroDuration());
  std::lock_guard lock(mutex_);
  stream_ = std::make_shared<Stream>(address_, tls_, std::move(callbacks));
  stream_->Begin();
}

void TrackerClient::Send(v1::AgentMessage message) {
  std::lock_guard lock(mutex_);
  if (stream_ != nullptr) stream_->Send(std::move(message));
}

void TrackerClient::Close(absl::Duration linger) {
  std::shared_ptr<Stream> stream;
  {
    std::lock_guard lock(mutex_);
    stream = std::move(stream_);
    stream_ = nullptr;
  }
  if (stream == nullptr) return;
  stream->Mute();
  stream->Close(linger);
  if (!stream->WaitDone(absl::Seconds(1))) {
    // A cancelled call is done at once. Should one not be, it may not be freed.
    static auto* const undone = new std::vector<std::shared_ptr<Stream>>;
    static std::mutex undone_mutex;
    std::lock_guard lock(undone_mutex);
    undone->push_back(std::move(stream));
  }
}

}  // namespace regatta
