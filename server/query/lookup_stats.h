// Questions for best-known schedules since the server started.
//
// Thread-safe.
#ifndef REGATTA_SERVER_QUERY_LOOKUP_STATS_H_
#define REGATTA_SERVER_QUERY_LOOKUP_STATS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/metrics/histogram.h"
#include "base/metrics/metrics_page.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta {

class LookupStats {
 public:
  void Answered(const absl::StatusOr<v1::BestAnswer>& answer,
                absl::Duration took);
  void Collect(MetricsPage& page) const;

 private:
  DurationHistogram took_{LatencyBounds()};
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> answers_;  // by grade, or "refused"
};

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_LOOKUP_STATS_H_
