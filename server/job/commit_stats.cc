#include "server/job/commit_stats.h"

#include "proto/outcome_metrics.h"

namespace regatta {

void CommitStats::Committed(absl::Duration took) { commit_.Observe(took); }

void CommitStats::Failed() {
  std::lock_guard lock(mutex_);
  ++failures_;
}

void CommitStats::Judged(v1::Outcome outcome, v1::AckStatus status) {
  std::lock_guard lock(mutex_);
  ++verdicts_[status];
  if (status == v1::ACK_STATUS_STORED) ++stored_[outcome];
}

void CommitStats::SetUnstored(int64_t count) {
  std::lock_guard lock(mutex_);
  unstored_ = count;
}

void CommitStats::Collect(MetricsPage& page) const {
  page.Histogram("regatta_server_commit_seconds",
                 "Time that the tuning log took for a batch of results until "
                 "it was durable",
                 commit_.Snapshot());
  std::lock_guard lock(mutex_);
  page.Counter("regatta_server_commit_failures_total",
               "Batches of results that the tuning log could not take; they "
               "are tried again",
               static_cast<double>(failures_));
  page.Gauge("regatta_server_unstored_results",
             "Results in memory that the tuning log has not taken yet",
             static_cast<double>(unstored_));
  AddOutcomes("regatta_server_trials_total",
              "Trials stored in the tuning log, by outcome", stored_, page);
  AddVerdicts("regatta_server_results_total",
              "Results that came from boards, by what was answered to them",
              verdicts_, page);
}

}  // namespace regatta
