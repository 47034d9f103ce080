// What a benchmark of the tuning log measures, one function each. Times are
// in seconds unless a name says otherwise.
#ifndef REGATTA_TESTS_BENCH_STORAGE_MEASURES_H_
#define REGATTA_TESTS_BENCH_STORAGE_MEASURES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/tuning_log.h"
#include "tests/bench/planted_log.h"

namespace regatta::bench {

double SecondsOf(const std::function<void()>& work);

// Median and 99th percentile of repeated calls.
struct Spread {
  double median = 0, p99 = 0;
};
Spread SpreadOf(std::vector<double> seconds);
// Calls `work` with 0 to `times` - 1.
Spread TimeEach(int times, const std::function<void(int)>& work);

// The log's file and its write-ahead log leave the page cache: the next reads
// go to the disk. Waits for the disk first.
void DropFromPageCache(const std::string& path);

// A process of its own opens the log, appends `records` one by one and is
// killed with all of them in the write-ahead log.
absl::Status LeaveUncheckpointed(const std::string& path,
                                 const PlantedLog& plan, int records,
                                 int64_t first_job);

// fdatasync(2) of a page appended to a file in `folder`: what no durable
// acknowledgement can be faster than.
Spread RawSync(const std::string& folder);

struct SustainedResult {
  double seconds = 0;
  int64_t records = 0;
  Spread ack;  // of an Append call
  int64_t lookups = 0;
  Spread lookup;  // while that went on
  double records_per_s() const {
    return static_cast<double>(records) / seconds;
  }
};
struct SustainedLoad {
  double seconds = 10;
  int writers = 16;
  int batch = 1;          // records a call
  int readers = 2;        // each looks best-known answers up without a pause
  int64_t first_job = 0;  // of the plan, so that trial ids are new
};
absl::StatusOr<SustainedResult> Sustain(TuningLog& log, const PlantedLog& plan,
                                        const SustainedLoad& load);

}  // namespace regatta::bench

#endif  // REGATTA_TESTS_BENCH_STORAGE_MEASURES_H_
