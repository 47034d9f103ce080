// The part of a person with many jobs: submits them, watches, cancels.
#ifndef REGATTA_TESTS_FLEET_SIM_JOBS_CLIENT_H_
#define REGATTA_TESTS_FLEET_SIM_JOBS_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/tls_identity.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta::fleet_sim {

class JobsClient {
 public:
  // `tls`: nullptr for plain text.
  JobsClient(const std::string& server, std::shared_ptr<TlsIdentity> tls);
  ~JobsClient();

  // Waits for the server to answer.
  absl::Status WaitReady(absl::Duration limit);
  absl::StatusOr<v1::Job> Submit(const v1::SubmitJobRequest& request);
  absl::StatusOr<std::vector<v1::Job>> List();
  absl::Status Cancel(int64_t job_id);
  absl::StatusOr<int64_t> CountDevices();

 private:
  struct Stub;
  std::unique_ptr<Stub> stub_;
};

}  // namespace regatta::fleet_sim

#endif  // REGATTA_TESTS_FLEET_SIM_JOBS_CLIENT_H_
