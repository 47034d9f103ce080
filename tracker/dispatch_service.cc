#include "tracker/dispatch_service.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/grpc_status_service.h"
#include "proto/utf8_texts.h"
#include "tracker/read_ahead.h"

namespace regatta {
namespace {

// Twice what may wait for a commit, plus reports.
constexpr int64_t kMaxQueuedBytes = int64_t{160} << 20;
// A server that commits slowly reads all the same.
constexpr absl::Duration kMaxUnread = absl::Minutes(5);
// Messages of a server that wait for the core. With one, each would wait for
// everything that thousands of agents said before it.
constexpr int kMostWaiting = 32;

template <typename T>
void Reply(absl::StatusOr<T> result, T* response,
           grpc::ServerUnaryReactor* reactor) {
  if (result.ok()) {
    *response = *std::move(result);
    // What is told of long ago was kept by other versions.
    MakeTextsUtf8(*response);
  }
  reactor->Finish(ToGrpc(result.status()));
}

}  // namespace

grpc::ServerBidiReactor<v1::DispatchRequest, v1::DispatchEvent>*
DispatchServiceImpl::Dispatch(grpc::CallbackServerContext* context) {
  std::shared_ptr<Reactor> reactor =
      Reactor::Make(context, kMaxQueuedBytes, kMaxUnread);
  const StreamId stream = streams_.Add(reactor);
  loop_.Post([stream](TrackerCore& core) { core.ServerOpened(stream); });
  auto ahead = std::make_shared<ReadAhead>(kMostWaiting,
                                           [reactor] { reactor->ReadNext(); });
  reactor->Begin(
      {[this, stream, ahead](v1::DispatchRequest request) {
         ahead->Give([&] {
           loop_.Post([stream, ahead,
                       request = std::move(request)](TrackerCore& core) {
             core.ServerSaid(stream, request);
             ahead->Took();
           });
         });
       },
       [this, stream] {
         streams_.Remove(stream);
         loop_.Post([stream](TrackerCore& core) { core.ServerClosed(stream); });
       }});
  return reactor.get();
}

grpc::ServerUnaryReactor* DispatchServiceImpl::ListDevices(
    grpc::CallbackServerContext* context, const v1::ListDevicesRequest* request,
    v1::ListDevicesResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  loop_.Post([reactor, response](TrackerCore& core) {
    *response = core.ListDevices();
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerUnaryReactor* DispatchServiceImpl::ControlDevices(
    grpc::CallbackServerContext* context,
    const v1::ControlDevicesRequest* request,
    v1::ControlDevicesResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  loop_.Post([reactor, request, response](TrackerCore& core) {
    Reply(core.ControlDevices(*request), response, reactor);
  });
  return reactor;
}

grpc::ServerUnaryReactor* DispatchServiceImpl::DeviceHistory(
    grpc::CallbackServerContext* context,
    const v1::DeviceHistoryRequest* request,
    v1::DeviceHistoryResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  loop_.Post([reactor, request, response](TrackerCore& core) {
    Reply(core.DeviceHistory(*request), response, reactor);
  });
  return reactor;
}

void DispatchServiceImpl::Send(StreamId stream, v1::DispatchEvent event) {
  if (auto reactor = streams_.Find(stream)) reactor->Send(std::move(event));
}

void DispatchServiceImpl::Close(StreamId stream, const absl::Status& status) {
  if (auto reactor = streams_.Find(stream)) reactor->Close(status);
}

}  // namespace regatta
