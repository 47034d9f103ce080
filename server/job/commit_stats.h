// What became of results at the server since it started.
//
// Thread-safe.
#ifndef REGATTA_SERVER_JOB_COMMIT_STATS_H_
#define REGATTA_SERVER_JOB_COMMIT_STATS_H_

#include <cstdint>
#include <map>
#include <mutex>

#include "absl/time/time.h"
#include "base/metrics/histogram.h"
#include "base/metrics/metrics_page.h"
#include "regatta/v1/fleet_service.pb.h"
#include "regatta/v1/trial.pb.h"

namespace regatta {

class CommitStats {
 public:
  // The log took a batch of results, or was asked to and did not.
  void Committed(absl::Duration took);
  void Failed();
  // The verdict on one result.
  void Judged(v1::Outcome outcome, v1::AckStatus status);
  // Results in memory that the log has not taken.
  void SetUnstored(int64_t count);

  void Collect(MetricsPage& page) const;

 private:
  DurationHistogram commit_{LatencyBounds()};
  mutable std::mutex mutex_;
  int64_t failures_ = 0;
  int64_t unstored_ = 0;
  std::map<v1::Outcome, int64_t> stored_;
  std::map<v1::AckStatus, int64_t> verdicts_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_JOB_COMMIT_STATS_H_
