// What every process knows of itself, by the names that Prometheus's client
// libraries give it.
#ifndef REGATTA_BASE_METRICS_PROCESS_METRICS_H_
#define REGATTA_BASE_METRICS_PROCESS_METRICS_H_

#include <string>

#include "base/metrics/metrics_page.h"

namespace regatta {

// process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds,
// process_max_fds, process_threads, process_start_time_seconds (unix time) and
// regatta_build_info, whose labels are the daemon's name, its version and
// `labels`. What the system does not tell is left out.
void CollectProcess(const std::string& daemon, const std::string& version,
                    MetricLabels labels, MetricsPage& page);

}  // namespace regatta

#endif  // REGATTA_BASE_METRICS_PROCESS_METRICS_H_
