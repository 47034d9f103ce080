#include "base/metrics/process_metrics.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace regatta {
namespace {

// proc(5): the fields of /proc/self/stat behind the command's name, of which
// the first here is number 3.
std::vector<std::string> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  return {std::istream_iterator<std::string>(fields), {}};
}

// Seconds since the epoch at which the machine started.
double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    double seconds = 0;
    if (std::sscanf(line.c_str(), "btime %lf", &seconds) == 1) return seconds;
  }
  return 0;
}

}  // namespace

void CollectProcess(const std::string& daemon, const std::string& version,
                    MetricLabels labels, MetricsPage& page) {
  labels.insert(labels.begin(), {{"daemon", daemon}, {"version", version}});
  page.Gauge("regatta_build_info", "What this program is; the value is 1", 1,
             std::move(labels));
  rusage used = {};
  if (getrusage(RUSAGE_SELF, &used) == 0) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + time.tv_usec * 1e-6;
    };
    page.Counter("process_cpu_seconds_total",
                 "Processor time of all threads, seconds",
                 seconds(used.ru_utime) + seconds(used.ru_stime));
  }
  const std::vector<std::string> fields = StatFields();
  if (fields.size() > 21) {
    page.Gauge("process_threads", "Threads now", std::stod(fields[17]));
    if (const double boot = BootTime(); boot > 0) {
      page.Gauge("process_start_time_seconds",
                 "When the process started, unix time",
                 boot + std::stod(fields[19]) /
                            static_cast<double>(sysconf(_SC_CLK_TCK)));
    }
    page.Gauge(
        "process_resident_memory_bytes", "Resident memory",
        std::stod(fields[21]) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  }
  std::error_code error;
  std::filesystem::directory_iterator open_files("/proc/self/fd", error);
  if (!error) {
    page.Gauge("process_open_fds", "Open file descriptors",
               static_cast<double>(std::distance(begin(open_files),
                                                 end(open_files))) -
                   1);  // the folder itself
  }
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    page.Gauge("process_max_fds", "Most file descriptors that may be open",
               static_cast<double>(files.rlim_cur));
  }
}

}  // namespace regatta
