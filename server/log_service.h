// LogService over gRPC: translates, decides nothing.
//
// Thread safety: gRPC calls it from many threads.
#ifndef REGATTA_SERVER_LOG_SERVICE_H_
#define REGATTA_SERVER_LOG_SERVICE_H_

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "regatta/v1/log_service.grpc.pb.h"
#include "server/call_limit.h"
#include "server/query/spec_check.h"
#include "storage/tuning_log.h"

namespace regatta {

class LogServiceImpl final : public v1::LogService::Service {
 public:
  using Describe =
      std::function<absl::StatusOr<WorkloadInfo>(const std::string& text)>;
  // The bytes of a snapshot of the log.
  using WriteSnapshotFile =
      std::function<absl::StatusOr<std::string>(const UpkeepProgress&)>;
  // Calls that stream at once, but for backups; more are RESOURCE_EXHAUSTED.
  static constexpr int kMaxStreams = 32;
  // Of these, calls that read all of the log in one go (checks, rebuilds,
  // snapshots).
  static constexpr int kMaxWholeReads = 2;

  // `log` is not owned and outlives the service. `describe` reads the texts of
  // imported workloads.
  LogServiceImpl(TuningLog* log, Describe describe, WriteSnapshotFile snapshot)
      : log_(log),
        describe_(std::move(describe)),
        snapshot_(std::move(snapshot)) {}

  // Ends what streams, so that the server can shut down at once.
  void Close() { closing_ = true; }

  grpc::Status Check(grpc::ServerContext* context,
                     const v1::CheckLogRequest* request,
                     grpc::ServerWriter<v1::CheckLogResponse>* writer) override;
  grpc::Status Rebuild(
      grpc::ServerContext* context, const v1::RebuildLogRequest* request,
      grpc::ServerWriter<v1::RebuildLogResponse>* writer) override;
  grpc::Status Backup(
      grpc::ServerContext* context, const v1::BackupLogRequest* request,
      grpc::ServerWriter<v1::BackupLogResponse>* writer) override;
  grpc::Status Export(
      grpc::ServerContext* context, const v1::ExportLogRequest* request,
      grpc::ServerWriter<v1::ExportLogResponse>* writer) override;
  grpc::Status Import(grpc::ServerContext* context,
                      const v1::ImportLogRequest* request,
                      v1::ImportLogResponse* response) override;
  grpc::Status Snapshot(
      grpc::ServerContext* context, const v1::SnapshotLogRequest* request,
      grpc::ServerWriter<v1::SnapshotLogResponse>* writer) override;

 private:
  // A StreamSender to the client of a call. The log waits for no client: what
  // holds one of its states or its readers never waits for a write to the
  // stream.
  template <typename Response>
  class Stream;

  TuningLog* const log_;
  const Describe describe_;
  const std::function<absl::Status(const v1::TrialSpec&)> check_spec_ =
      MakeSpecCheck();
  const WriteSnapshotFile snapshot_;
  CallLimit streams_{kMaxStreams};
  CallLimit whole_reads_{kMaxWholeReads};
  std::mutex backup_mutex_;  // held by the one backup that runs
  std::atomic<bool> closing_ = false;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_LOG_SERVICE_H_
