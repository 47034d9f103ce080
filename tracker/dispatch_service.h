// DispatchService over gRPC: translates streams into inputs of the core and its
// actions into events. All rules are in the core.
#ifndef REGATTA_TRACKER_DISPATCH_SERVICE_H_
#define REGATTA_TRACKER_DISPATCH_SERVICE_H_

#include <memory>

#include "regatta/v1/dispatch_service.grpc.pb.h"
#include "tracker/actions.h"
#include "tracker/core_loop.h"
#include "tracker/stream_service.h"
#include "tracker/stream_table.h"

namespace regatta {

class DispatchServiceImpl : public v1::DispatchService::CallbackService {
 public:
  explicit DispatchServiceImpl(CoreLoop& loop) : loop_(loop) {}

  grpc::ServerBidiReactor<v1::DispatchRequest, v1::DispatchEvent>* Dispatch(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ListDevices(
      grpc::CallbackServerContext* context,
      const v1::ListDevicesRequest* request,
      v1::ListDevicesResponse* response) override;

  grpc::ServerUnaryReactor* ControlDevices(
      grpc::CallbackServerContext* context,
      const v1::ControlDevicesRequest* request,
      v1::ControlDevicesResponse* response) override;
  grpc::ServerUnaryReactor* DeviceHistory(
      grpc::CallbackServerContext* context,
      const v1::DeviceHistoryRequest* request,
      v1::DeviceHistoryResponse* response) override;

  // Nothing happens when the stream is gone.
  void Send(StreamId stream, v1::DispatchEvent event);
  void Close(StreamId stream, const absl::Status& status);

 private:
  using Reactor = StreamReactor<v1::DispatchRequest, v1::DispatchEvent>;
  CoreLoop& loop_;
  StreamTable<StreamId, Reactor> streams_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_DISPATCH_SERVICE_H_
