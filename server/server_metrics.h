// The server's page of metrics; docs/metrics.md lists them.
#ifndef REGATTA_SERVER_SERVER_METRICS_H_
#define REGATTA_SERVER_SERVER_METRICS_H_

#include <string>

#include "base/metrics/metrics_page.h"
#include "server/job/job_manager.h"
#include "server/log_inspection.h"
#include "server/query/lookup_stats.h"

namespace regatta {

// `log_path`: the tuning log's file, whose size is told with its write-ahead
// log's. From any thread.
void CollectServer(const JobManager& jobs, const LookupStats& lookups,
                   const LogInspection& inspection, const std::string& log_path,
                   MetricsPage& page);

}  // namespace regatta

#endif  // REGATTA_SERVER_SERVER_METRICS_H_
