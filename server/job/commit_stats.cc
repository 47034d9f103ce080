#include "server/job/commit_stats.h"

#include "proto/outcome_names.h"

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
  for (int number = v1::Outcome_MIN; number <= v1::Outcome_MAX; ++number) {
    const auto outcome = static_cast<v1::Outcome>(number);
    if (!v1::Outcome_IsValid(number) || number == 0) continue;
    const auto found = stored_.find(outcome);
    page.Counter(
        "regatta_server_trials_total",
        "Trials stored in the tuning log, by outcome",
        found == stored_.end() ? 0 : static_cast<double>(found->second),
        {{"outcome", OutcomeName(outcome)}});
  }
  constexpr std::pair<v1::AckStatus, const char*> kVerdicts[] = {
      {v1::ACK_STATUS_STORED, "stored"},
      {v1::ACK_STATUS_DUPLICATE, "duplicate"},
      {v1::ACK_STATUS_REJECTED, "rejected"}};
  for (const auto& [status, name] : kVerdicts) {
    const auto found = verdicts_.find(status);
    page.Counter(
        "regatta_server_results_total",
        "Results that came from boards, by what was answered to them",
        found == verdicts_.end() ? 0 : static_cast<double>(found->second),
        {{"verdict", name}});
  }
}

}  // namespace regatta
