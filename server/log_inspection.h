// Reads the whole tuning log again and again while it is served, so that a
// damaged file is noticed while a backup of before is still at hand. Damage
// (FindingKind) closes the log for writing (TuningLog::Seal): nothing is
// acknowledged any more, boards keep their results, reads go on, and the lab
// restores a backup (docs/operators-guide.md, "A damaged log"). Other findings
// are warnings in the program's own log, and everything goes on.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_SERVER_LOG_INSPECTION_H_
#define REGATTA_SERVER_LOG_INSPECTION_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/metrics/metrics_page.h"
#include "storage/tuning_log.h"

namespace regatta {

class LogInspection {
 public:
  // `log` outlives it. `path`: of its file, for messages. `every`: from one
  // check's end to the next one's beginning, the first after a 24th of it; zero
  // never checks. The thread takes processors that idle.
  LogInspection(TuningLog* log, std::string path, absl::Duration every);
  // Stops a check that runs.
  ~LogInspection();
  LogInspection(const LogInspection&) = delete;

  // Checks now. DataLoss: what is damaged; the log is sealed with it.
  // Cancelled: stopped. Another error: the log could not be read, which may
  // pass.
  absl::Status Inspect();

  void Collect(MetricsPage& page) const;

 private:
  void Loop();

  TuningLog* const log_;
  const std::string path_;
  const absl::Duration every_;
  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  int64_t checks_ = 0;  // that came to an end
  int64_t damage_ = 0;  // findings of the last one
  std::thread thread_;  // last: it uses the rest
};

}  // namespace regatta

#endif  // REGATTA_SERVER_LOG_INSPECTION_H_
