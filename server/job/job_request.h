// What a submitted job means: checks a request and fills in everything that it
// leaves open, so that the stored request alone says what the job does.
#ifndef REGATTA_SERVER_JOB_JOB_REQUEST_H_
#define REGATTA_SERVER_JOB_JOB_REQUEST_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/expr/expr.h"
#include "regatta/v1/tuning_service.pb.h"
#include "server/job/fleet_view.h"
#include "storage/tuning_log.h"

namespace regatta {

// One workload on one device class: everything about a task that is fixed when
// its job is submitted.
struct TaskSpec {
  int64_t job_id = 0;
  int index = 0;
  Workload workload;
  std::string device_class;
  v1::Policy policy;
  int64_t budget_trials = 0;  // 0: bounded by time
  int64_t budget_ms = 0;
  double until_gain = 0;  // speed-up that ends it early; 0: none does
  double weight = 1;      // among the tasks of the job
  double job_weight = 1;  // among the jobs of its priority
  std::string strategy;
  uint64_t seed = 0;
  int32_t priority = 0;
  std::string user;              // who asked for the job
  int64_t deadline_unix_ms = 0;  // 0: none
  bool fresh = false;

  BestKey Key() const {
    return {workload.key, device_class, policy.threads(), policy.cache()};
  }
};

inline constexpr int64_t kDefaultTrials = 200;
inline constexpr int64_t kMaxTrials = 1'000'000;
inline constexpr double kMaxMinutes = 60 * 24 * 365;
inline constexpr double kMaxGainPercent = 100'000;
inline constexpr double kMinWeight = 0.001, kMaxWeight = 1000;
inline constexpr int kMaxTasks = 1000;
inline constexpr size_t kMaxNameBytes = 200;

// What a request is checked against.
struct RequestContext {
  const FleetView* fleet = nullptr;
  std::vector<std::string> logged_classes;  // of the log that may be named
  uint64_t drawn_seed = 0;                  // for a request without a seed
};

// NotFound when neither the fleet nor the log knows the class, listing those
// that exist; Unavailable while no tracker has told of its devices.
// FailedPrecondition when a registered class has fewer cores than `threads`.
absl::Status CheckDeviceClass(const std::string& device_class, int threads,
                              const RequestContext& context);

// The request with every field filled in: workloads in their normal form,
// classes listed, budgets, weights, strategy and seed; a job-wide budget is
// divided among the tasks and is then zero. InvalidArgument names the field
// ("tasks[1]: trials is -5"); FailedPrecondition when no class was named and no
// real one is registered, or when no board of a class has the memory that the
// workload's tensors take.
//
// A task without a class gets every real class that has a board present; where
// none has, every registered real class.
absl::StatusOr<v1::SubmitJobRequest> NormaliseJobRequest(
    const v1::SubmitJobRequest& request, const RequestContext& context);

// The tasks of a normalised request, in order.
absl::StatusOr<std::vector<TaskSpec>> ExpandTasks(
    int64_t job_id, const v1::SubmitJobRequest& request);

}  // namespace regatta

#endif  // REGATTA_SERVER_JOB_JOB_REQUEST_H_
