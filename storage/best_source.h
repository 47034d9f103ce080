// What answers are made from: best-known rows and what they say about device
// classes. A tuning log has them, and so has a snapshot of one.
//
// Reads neither workload nor schedule nor target text.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_STORAGE_BEST_SOURCE_H_
#define REGATTA_STORAGE_BEST_SOURCE_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "regatta/v1/trial.pb.h"

namespace regatta {

// What a best-known answer is for.
struct BestKey {
  std::string workload_key;
  std::string device_class;
  int threads = 1;
  v1::CacheState cache = v1::CACHE_STATE_WARM;
  // Of records that another log's boards made. They are keys of their own: what
  // was imported never changes what our own records answer.
  bool imported = false;
  friend auto operator<=>(const BestKey&, const BestKey&) = default;
};

// A trial as stored.
struct StoredRecord {
  v1::TrialResult result;
  int64_t recorded_unix_ms = 0;
  std::string family;            // of the workload
  std::vector<int64_t> extents;  // of its indices, for neighbours
};

// What a workload is to the log: enough to find neighbours without reading its
// text.
struct WorkloadInfo {
  std::string key;
  std::string text;
  std::string family;
  // The canonical text with extents left out: workloads with equal structure
  // differ in shape only.
  std::string structure;
  std::vector<int64_t> extents;
};

// The best verified schedule of one key, from records.
//
// Rule: among the records of the key with outcome ok that were verified, the
// one confirmed last by an interleaved comparison (stored by Publish)
// stands until another is published. Where none was ever published, the record
// with the least time_ns, the default included; ties go to the earlier record.
// A record that was abandoned or has no time is never the best. Nor is one,
// published or not, whose binary (schedule and binary_hash) gave a wrong result
// in any record of the key: the answer is then the last publication before it,
// else the fastest that is left.
struct BestKnown {
  BestKey key;
  StoredRecord record;     // of the best schedule
  bool confirmed = false;  // by interleaved re-measurement
  int64_t time_ns = 0;
  int64_t low_ns = 0;  // 95 % interval; equal to time_ns when unknown
  int64_t high_ns = 0;
  int64_t samples = 0;     // timed blocks behind it, over all records of the
                           // schedule
  int64_t boards = 0;      // distinct devices behind it
  int64_t default_ns = 0;  // of the publication where it has one, so that it
                           // agrees with speedup; else the median over the
                           // key's default trials; 0: none
  double speedup = 0, speedup_low = 0, speedup_high = 0;  // 0: unknown
  int64_t since_unix_ms = 0;
  // A snapshot's mark: the compiler that wrote the file took the schedule for
  // the class's target. Never set by a log, which reads no schedules.
  bool taken = false;
  // Likewise: that compiler, another one than measured the row, builds the very
  // binary that was measured.
  bool same_binary = false;
};

// What a class's newest best-known record says of the class.
struct ClassFacts {
  std::string device_class;
  std::string target;            // complete target text
  std::string measure_protocol;  // version of the measuring protocol
  friend bool operator==(const ClassFacts&, const ClassFacts&) = default;
};

class BestSource {
 public:
  virtual ~BestSource() = default;

  virtual absl::StatusOr<std::optional<BestKnown>> Best(
      const BestKey& key) const = 0;
  // All best-known rows of a workload, on any class and policy, own and
  // imported, in the order of the key.
  virtual absl::StatusOr<std::vector<BestKnown>> BestOfWorkload(
      std::string_view workload_key) const = 0;
  // Best-known rows of other shapes of the same structure on the class and
  // policy of `key` (own or imported as `key` is), at most `limit`, nearest
  // first in the distance of log2 extents, ties by workload key.
  virtual absl::StatusOr<std::vector<BestKnown>> BestOfNeighbours(
      const WorkloadInfo& workload, const BestKey& key, int limit) const = 0;
  // Classes that there are records of, sorted: of our own, which a board of
  // this log once had, and with `imported` those of other logs too.
  virtual absl::StatusOr<std::vector<std::string>> DeviceClasses(
      bool imported) const = 0;
  // One per class that has a best-known row of our own, sorted by class.
  virtual absl::StatusOr<std::vector<ClassFacts>> FactsOfClasses() const = 0;
};

}  // namespace regatta

#endif  // REGATTA_STORAGE_BEST_SOURCE_H_
