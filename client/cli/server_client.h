// Calls of TuningService, with errors that say which server was asked.
#ifndef REGATTA_CLIENT_CLI_SERVER_CLIENT_H_
#define REGATTA_CLIENT_CLI_SERVER_CLIENT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/server_address.h"
#include "regatta/v1/security_service.pb.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta::cli {

// Thread-safe. Unary calls give up after 10 s; a server that is not there is
// noticed at once: Unavailable, with the address, where it came from and what
// to do.
class ServerClient {
 public:
  explicit ServerClient(ServerAddress address);
  ~ServerClient();

  absl::StatusOr<v1::Job> SubmitJob(const v1::SubmitJobRequest& request);
  absl::StatusOr<v1::Job> GetJob(int64_t job_id);
  absl::StatusOr<v1::ListJobsResponse> ListJobs();
  absl::StatusOr<v1::Job> CancelJob(int64_t job_id);
  absl::StatusOr<v1::Job> ResumeJob(int64_t job_id);
  absl::StatusOr<v1::BestAnswer> Best(const v1::BestRequest& request);
  absl::StatusOr<v1::ListDevicesResponse> ListDevices();
  absl::StatusOr<v1::ListAuditResponse> ListAudit(int64_t limit);
  absl::StatusOr<v1::ControlDevicesResponse> ControlDevices(
      const v1::ControlDevicesRequest& request);
  absl::StatusOr<v1::DeviceHistoryResponse> DeviceHistory(
      const v1::DeviceHistoryRequest& request);

  // Calls `visit` for every record; stops at the first error.
  absl::Status ListRecords(const v1::ListRecordsRequest& request,
                           const std::function<void(const v1::Record&)>& visit);

  // Calls `visit` with each status of the job until the job has ended or
  // `visit` returns false (OK), `stop` is set (Cancelled) or the job is unknown
  // (NotFound). A server that goes away is waited for, at most `patience` at a
  // time.
  absl::Status WatchJob(int64_t job_id, const std::atomic<bool>& stop,
                        absl::Duration patience,
                        const std::function<bool(const v1::Job&)>& visit);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A client of the server that the flags or the environment name.
absl::StatusOr<std::unique_ptr<ServerClient>> ConnectServer(
    const ServerFlags& flags);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_SERVER_CLIENT_H_
