// TuningService over gRPC: translates and checks, decides nothing.
//
// Thread safety: gRPC calls it from many threads.
#ifndef REGATTA_SERVER_TUNING_SERVICE_H_
#define REGATTA_SERVER_TUNING_SERVICE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "regatta/v1/tuning_service.grpc.pb.h"
#include "server/call_limit.h"
#include "server/job/job_manager.h"
#include "server/query/best_request.h"
#include "server/query/class_facts_book.h"
#include "server/query/lookup_stats.h"
#include "storage/tuning_log.h"

namespace regatta {

// Nothing is owned; everything outlives the service.
struct TuningServiceOptions {
  JobManager* jobs = nullptr;
  const TuningLog* log = nullptr;
  const Clock* clock = nullptr;
  std::function<absl::StatusOr<Target>(const Target&)> complete_target;
  std::function<absl::StatusOr<std::string>(const Target&)> compiler_version;
  GivesBinary gives_binary;  // see BestContext
  LookupStats* lookups = nullptr;  // told of every Best; null: nobody is
  std::function<absl::StatusOr<v1::ListDevicesResponse>()> list_devices;
  std::function<absl::StatusOr<v1::ControlDevicesResponse>(
      const v1::ControlDevicesRequest&)>
      control_devices;
  std::function<absl::StatusOr<v1::DeviceHistoryResponse>(
      const v1::DeviceHistoryRequest&)>
      device_history;
};

class TuningServiceImpl final : public v1::TuningService::Service {
 public:
  // Watchers and readers of records at once, each of which holds two threads;
  // more are RESOURCE_EXHAUSTED. One that takes nothing for a minute is
  // cancelled.
  static constexpr int kMaxStreams = 128;

  explicit TuningServiceImpl(TuningServiceOptions options);

  // Ends the streams, so that the server can shut down at once.
  void Close() { closing_.Notify(); }

  grpc::Status SubmitJob(grpc::ServerContext* context,
                         const v1::SubmitJobRequest* request,
                         v1::Job* response) override;
  grpc::Status GetJob(grpc::ServerContext* context,
                      const v1::GetJobRequest* request,
                      v1::Job* response) override;
  grpc::Status ListJobs(grpc::ServerContext* context,
                        const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status WatchJob(grpc::ServerContext* context,
                        const v1::GetJobRequest* request,
                        grpc::ServerWriter<v1::Job>* writer) override;
  grpc::Status CancelJob(grpc::ServerContext* context,
                         const v1::GetJobRequest* request,
                         v1::Job* response) override;
  grpc::Status ResumeJob(grpc::ServerContext* context,
                         const v1::GetJobRequest* request,
                         v1::Job* response) override;
  grpc::Status Best(grpc::ServerContext* context,
                    const v1::BestRequest* request,
                    v1::BestAnswer* response) override;
  grpc::Status ListRecords(
      grpc::ServerContext* context, const v1::ListRecordsRequest* request,
      grpc::ServerWriter<v1::ListRecordsResponse>* writer) override;
  grpc::Status ListDevices(grpc::ServerContext* context,
                           const v1::ListDevicesRequest* request,
                           v1::ListDevicesResponse* response) override;
  grpc::Status ControlDevices(grpc::ServerContext* context,
                              const v1::ControlDevicesRequest* request,
                              v1::ControlDevicesResponse* response) override;
  grpc::Status DeviceHistory(grpc::ServerContext* context,
                             const v1::DeviceHistoryRequest* request,
                             v1::DeviceHistoryResponse* response) override;

 private:
  absl::Status CheckClass(const std::string& device_class, int threads) const;

  const TuningServiceOptions options_;
  BestMemo memo_;
  ClassFactsBook facts_;
  BestRequestContext best_context_;  // but for the time
  absl::Notification closing_;
  CallLimit streams_{kMaxStreams};
};

}  // namespace regatta

#endif  // REGATTA_SERVER_TUNING_SERVICE_H_
