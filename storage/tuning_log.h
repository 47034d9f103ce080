// The tuning log: append-only records of trials, the jobs that asked for them,
// and the best-known answers derived from the records.
//
// Two backends share this interface and one contract suite: SQLite (the
// default) and, later, PostgreSQL.
//
// Consistency. Append is durable when it returns: a crash of the process or
// machine afterwards loses nothing. Records are never changed or removed. A
// read that starts after an Append returned sees it. Best-known rows are a view
// that Append keeps up to date and RebuildBest derives again from the records
// alone.
//
// Storage reads neither workload nor schedule nor target text.
//
// A read that holds one state of the log for so long that the log's own files
// grow without bounds is asked to end: it goes on by itself where it can, else
// it fails with Aborted, which means to try again.
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
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "regatta/v1/trial.pb.h"
#include "regatta/v1/tuning_service.pb.h"
#include "storage/best_source.h"
#include "storage/log_exchange.h"
#include "storage/log_upkeep.h"

namespace regatta {

// The verdict of a confirmation; stored as an append-only row of its own.
struct Publication {
  BestKey key;
  std::string trial_id;  // the confirming record of the winner
  int64_t time_ns = 0, low_ns = 0, high_ns = 0;
  int64_t default_ns = 0;
  double speedup = 0, speedup_low = 0, speedup_high = 0;
  int64_t job_id = 0;
};

enum class AppendStatus { kStored, kDuplicate };

struct RecordFilter {
  std::string workload_key;  // required
  std::string device_class;  // "": any
  std::optional<int> threads;
  std::optional<v1::CacheState> cache;
  std::optional<int64_t> job_id;  // of this log, or an imported one
  bool imported = false;          // records of other logs, too
};

class TuningLog : public BestSource {
 public:
  // A random name of this log, made with it: identifies the server to trackers.
  virtual std::string LogId() const = 0;

  // Makes workloads known. Idempotent. REQUIRED before their records.
  virtual absl::Status PutWorkload(const WorkloadInfo& workload) = 0;

  // Stores the results and updates best-known, durably, in one transaction; one
  // status per result in order. A trial_id that is stored already is
  // kDuplicate and changes nothing. InvalidArgument names a malformed result
  // (no trial_id, unknown workload, no device class, threads or cache state, no
  // outcome, kept block without calls, a time that its blocks do not give, an
  // ordinal that its job in this log never handed out); nothing of the batch is
  // stored then.
  // ResourceExhausted when the disk is full: nothing is stored and the log
  // stays readable. FailedPrecondition when the log's file is not in its place
  // any more (deleted, moved or replaced): nothing counts as stored until the
  // very file is back; the same holds for every other write.
  virtual absl::StatusOr<std::vector<AppendStatus>> Append(
      absl::Span<const v1::TrialResult> results, int64_t recorded_unix_ms) = 0;

  // Stores a verdict and makes it the answer of its key. InvalidArgument: the
  // verdict makes no sense, or its trial is of another key. NotFound: no such
  // trial. FailedPrecondition: its record may not be the best (see BestKnown).
  virtual absl::Status Publish(const Publication& publication,
                               int64_t unix_ms) = 0;

  // Calls `visit` for every best-known row, own and imported, with what is
  // known of its workload, in the order of the key, until it returns false. It
  // may take its time: nobody waits for it, and no state of the log is held
  // meanwhile. Each row is as it was at some moment of the call.
  virtual absl::Status ForEachBest(
      const std::function<bool(const WorkloadInfo&, const BestKnown&)>& visit)
      const = 0;
  // Derives the view from the records again, in steps between which others
  // write; each of its rows is right from its step on. Returns how many were
  // not. `progress` hears of keys; Cancelled when it stopped the work, whose
  // steps so far stay. Aborted: one key has so many records that its step was
  // asked to end.
  virtual absl::StatusOr<int64_t> RebuildBest(
      const UpkeepProgress& progress) = 0;
  // Looking after the log; taking it in and out. Owned by it.
  virtual const LogUpkeep& upkeep() const = 0;
  virtual LogExchange& exchange() = 0;
  // Who holds the log, for the error that a second opener gets, where that is
  // known only after it was opened. See OpenOptions::holder.
  virtual void NameHolder(const std::string& holder) = 0;
  // For a log that was found to be damaged: from now on, until it is opened
  // again, nothing is stored and every write fails with `why`, the first that
  // was given. Reads go on.
  virtual void Seal(const absl::Status& why) = 0;

  // Calls `visit` for each match, oldest first, until it returns false.
  virtual absl::Status ForEachRecord(
      const RecordFilter& filter,
      const std::function<bool(const StoredRecord&)>& visit) const = 0;
  virtual absl::StatusOr<int64_t> CountRecords() const = 0;

  // Jobs are stored as their request and their latest status. A new job gets
  // the next id; a request_id seen before gives that job's id again.
  virtual absl::StatusOr<int64_t> CreateJob(const v1::SubmitJobRequest& request,
                                            int64_t unix_ms) = 0;
  // Work that a job's runner has out: opaque, by task and a number of the
  // runner's.
  struct JobWork {
    int task = 0;
    int64_t number = 0;
    std::string bytes;
  };
  // Status, and opaque progress of the runner (`checkpoint`), which takes the
  // place of the one before, and what became of its work since then; durable
  // when it returns, in one transaction. NotFound names a job that does not
  // exist; none is saved then.
  struct JobProgress {
    v1::Job job;
    std::string checkpoint;
    std::vector<JobWork> opened;                  // new, or instead of the same
    std::vector<std::pair<int, int64_t>> closed;  // by task and number
    bool no_work = false;  // it has none out any more, whatever was opened
  };
  virtual absl::Status SaveJobs(absl::Span<const JobProgress> jobs) = 0;
  absl::Status SaveJob(const v1::Job& job, std::string_view checkpoint) {
    JobProgress one;
    one.job = job;
    one.checkpoint = checkpoint;
    return SaveJobs({&one, 1});
  }
  struct StoredJob {
    v1::SubmitJobRequest request;
    v1::Job job;  // empty but for job_id until first saved
    std::string checkpoint;
    std::vector<JobWork> work;  // by task, then by number
    // ListJobs only: why the rest cannot be read. "": it can.
    std::string damage;
  };
  // NotFound names the id; DataLoss when its bytes are damaged.
  virtual absl::StatusOr<StoredJob> GetJob(int64_t job_id) const = 0;
  // Newest first. A damaged one is listed with its id alone and the damage.
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
