// LogService over gRPC: translates, decides nothing.
//
// Thread safety: gRPC calls it from many threads.
#ifndef REGATTA_SERVER_LOG_SERVICE_H_
#define REGATTA_SERVER_LOG_SERVICE_H_

#include <atomic>

#include "regatta/v1/log_service.grpc.pb.h"
#include "storage/tuning_log.h"

namespace regatta {

class LogServiceImpl final : public v1::LogService::Service {
 public:
  // Not owned, outlives the service.
  explicit LogServiceImpl(TuningLog* log) : log_(log) {}

  // Ends what streams, so that the server can shut down at once.
  void Close() { closing_ = true; }

  grpc::Status Check(grpc::ServerContext* context,
                     const v1::CheckLogRequest* request,
                     grpc::ServerWriter<v1::CheckLogResponse>* writer) override;
  grpc::Status Rebuild(grpc::ServerContext* context,
                       const v1::RebuildLogRequest* request,
                       v1::RebuildLogResponse* response) override;

 private:
  // A progress that sends each report, as a field of `Response`, to `writer`
  // and stops what nobody waits for any more.
  template <typename Response>
  UpkeepProgress Reporter(grpc::ServerContext* context,
                          grpc::ServerWriter<Response>* writer) const;

  TuningLog* const log_;
  std::atomic<bool> closing_ = false;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_LOG_SERVICE_H_
