// The tuning log: append-only records of trials, the jobs that asked for them,
// and the best-known answers derived from the records.
//
// Two backends share this interface and one contract suite: SQLite (the
// default) and, later, PostgreSQL.
//
// Consistency. Append is durable when it returns: a crash of the process or
// machine afterwards loses nothing. Records are never changed or removed. A read
// that starts after an Append returned sees it. Best-known rows are a view that
// Append keeps up to date and RebuildBest derives again from the records alone.
//
// Storage reads neither workload nor schedule nor target text.
//
// Thread safety: all methods may be called from any thread; writers wait for
// one another, readers do not wait for writers.
#ifndef REGATTA_STORAGE_TUNING_LOG_H_
#define REGATTA_STORAGE_TUNING_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "regatta/v1/trial.pb.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta {

// What a best-known answer is for.
struct BestKey {
  std::string workload_key;
  std::string device_class;
  int threads = 1;
  v1::CacheState cache = v1::CACHE_STATE_WARM;
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
  StoredRecord record;        // of the best schedule
  bool confirmed = false;     // by interleaved re-measurement
  int64_t time_ns = 0;
  int64_t low_ns = 0;         // 95 % interval; equal to time_ns when unknown
  int64_t high_ns = 0;
  int64_t samples = 0;        // timed blocks behind it, over all records of the
                              // schedule
  int64_t boards = 0;         // distinct devices behind it
  int64_t default_ns = 0;     // of the publication where it has one, so that it
                              // agrees with speedup; else the median over the
                              // key's default trials; 0: none
  double speedup = 0, speedup_low = 0, speedup_high = 0;  // 0: unknown
  int64_t since_unix_ms = 0;
};

// The verdict of a confirmation; stored as an append-only row of its own.
struct Publication {
  BestKey key;
  std::string trial_id;       // the confirming record of the winner
  int64_t time_ns = 0, low_ns = 0, high_ns = 0;
  int64_t default_ns = 0;
  double speedup = 0, speedup_low = 0, speedup_high = 0;
  int64_t job_id = 0;
};

enum class AppendStatus { kStored, kDuplicate };

struct RecordFilter {
  std::string workload_key;                 // required
  std::string device_class;                 // "": any
  std::optional<int> threads;
  std::optional<v1::CacheState> cache;
  std::optional<int64_t> job_id;
};

class TuningLog {
 public:
  virtual ~TuningLog() = default;

  // A random name of this log, made with it: identifies the server to trackers.
  virtual std::string LogId() const = 0;

  // Makes workloads known. Idempotent. REQUIRED before their records.
  virtual absl::Status PutWorkload(const WorkloadInfo& workload) = 0;

  // Stores the results and updates best-known, durably, in one transaction; one
  // status per result in order. A trial_id that is stored already is
  // kDuplicate and changes nothing. InvalidArgument names a malformed result
  // (no trial_id, unknown workload, no device class, threads or cache state, no
  // outcome, kept block without calls); nothing of the batch is stored then. ResourceExhausted when the disk is full: nothing is
  // stored and the log stays readable.
  virtual absl::StatusOr<std::vector<AppendStatus>> Append(
      absl::Span<const v1::TrialResult> results, int64_t recorded_unix_ms) = 0;

  // Stores a verdict and makes it the answer of its key. InvalidArgument: the
  // verdict makes no sense, or its trial is of another key. NotFound: no such
  // trial. FailedPrecondition: its record may not be the best (see BestKnown).
  virtual absl::Status Publish(const Publication& publication,
                               int64_t unix_ms) = 0;

  virtual absl::StatusOr<std::optional<BestKnown>> Best(
      const BestKey& key) const = 0;
  // All best-known rows of a workload, on any class and policy.
  virtual absl::StatusOr<std::vector<BestKnown>> BestOfWorkload(
      std::string_view workload_key) const = 0;
  // Best-known rows of other shapes of the same structure on the class and
  // policy of `key`, at most `limit`, nearest first in the distance of
  // log2 extents.
  virtual absl::StatusOr<std::vector<BestKnown>> BestOfNeighbours(
      const WorkloadInfo& workload, const BestKey& key, int limit) const = 0;
  // Drops the view and derives it again.
  virtual absl::Status RebuildBest() = 0;

  // Calls `visit` for each match, oldest first, until it returns false.
  virtual absl::Status ForEachRecord(
      const RecordFilter& filter,
      const std::function<bool(const StoredRecord&)>& visit) const = 0;
  virtual absl::StatusOr<int64_t> CountRecords() const = 0;
  virtual absl::StatusOr<std::vector<std::string>> DeviceClasses() const = 0;

  // Jobs are stored as their request and their latest status. A new job gets
  // the next id; a request_id seen before gives that job's id again.
  virtual absl::StatusOr<int64_t> CreateJob(const v1::SubmitJobRequest& request,
                                            int64_t unix_ms) = 0;
  // Status, and opaque progress of the runner (`checkpoint`).
  virtual absl::Status SaveJob(const v1::Job& job,
                               std::string_view checkpoint) = 0;
  struct StoredJob {
    v1::SubmitJobRequest request;
    v1::Job job;             // empty but for job_id until first saved
    std::string checkpoint;
  };
  // NotFound names the id.
  virtual absl::StatusOr<StoredJob> GetJob(int64_t job_id) const = 0;
  // Newest first.
  virtual absl::StatusOr<std::vector<StoredJob>> ListJobs() const = 0;

  // A block of `count` ordinals of a task that were never handed out before;
  // returns the first. Durable, so that trial ids are never used twice.
  virtual absl::StatusOr<int64_t> ReserveOrdinals(int64_t job_id, int task,
                                                  int64_t count) = 0;
};

// Opens or creates the log at `location` for this process alone, by its scheme:
// a path or "sqlite:PATH". THE list of backends is in open_tuning_log.cc.
//
// FailedPrecondition: another process holds it (names who, where known), or it
// is of a newer version (names both versions). DataLoss: it is corrupt (says
// what the check found; the file is left untouched). PermissionDenied,
// NotFound: as they say, with the path.
struct OpenOptions {
  bool create = true;
  // Only look: the file must exist; nothing is written, no migration runs.
  // Not refused by others that only look, but by a process that may write.
  bool read_only = false;
  // Who opens it, for the error that a second opener gets: "regatta-server at
  // 127.0.0.1:4567". The process id is added.
  std::string holder;
};
absl::StatusOr<std::unique_ptr<TuningLog>> OpenTuningLog(
    std::string_view location, const OpenOptions& options = {});

}  // namespace regatta

#endif  // REGATTA_STORAGE_TUNING_LOG_H_
