#include "server/query/lookup_stats.h"

namespace regatta {

void LookupStats::Answered(const absl::StatusOr<v1::BestAnswer>& answer,
                           absl::Duration took) {
  took_.Observe(took);
  std::lock_guard lock(mutex_);
  ++answers_[answer.ok() ? answer->grade() : "refused"];
}

void LookupStats::Collect(MetricsPage& page) const {
  page.Histogram("regatta_server_lookup_seconds",
                 "Time to answer which schedule is best", took_.Snapshot());
  std::lock_guard lock(mutex_);
  for (const char* grade : {"exact", "compatible", "neighbour_shape",
                            "neighbour_device", "default", "refused"}) {
    const auto found = answers_.find(grade);
    page.Counter(
        "regatta_server_lookups_total",
        "Questions which schedule is best, by the grade of the answer",
        found == answers_.end() ? 0 : static_cast<double>(found->second),
        {{"grade", grade}});
  }
}

}  // namespace regatta
