#include "server/server_metrics.h"

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "proto/outcome_names.h"

namespace regatta {

void CollectServer(const JobManager& jobs, const LookupStats& lookups,
                   const LogInspection& inspection, const std::string& log_path,
                   MetricsPage& page) {
  jobs.commit_stats().Collect(page);
  lookups.Collect(page);
  inspection.Collect(page);
  const JobCounts counts = jobs.Count();
  for (const v1::JobState state :
       {v1::JOB_STATE_QUEUED, v1::JOB_STATE_RUNNING, v1::JOB_STATE_PAUSED}) {
    const auto found = counts.open.find(state);
    page.Gauge(
        "regatta_server_jobs", "Jobs that have not ended, by state",
        found == counts.open.end() ? 0 : static_cast<double>(found->second),
        {{"state", JobStateName(state)}});
  }
  page.Gauge("regatta_server_tracker_attached",
             "Whether the tracker is connected: 1 or 0",
             counts.attached ? 1 : 0);
  uintmax_t bytes = 0;
  for (const char* suffix : {"", "-wal"}) {
    std::error_code error;
    const uintmax_t size =
        std::filesystem::file_size(absl::StrCat(log_path, suffix), error);
    if (!error) bytes += size;
  }
  page.Gauge("regatta_server_log_bytes",
             "Size of the tuning log's files on disk",
             static_cast<double>(bytes));
}

}  // namespace regatta
