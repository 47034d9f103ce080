// The tables job, job_work and ordinal.
//
// Functions that write run inside the writer's transaction.
#ifndef REGATTA_STORAGE_SQLITE_JOB_STORE_H_
#define REGATTA_STORAGE_SQLITE_JOB_STORE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/sqlite/connection.h"
#include "storage/tuning_log.h"

namespace regatta::sqlite {

absl::StatusOr<int64_t> CreateJob(Connection& db,
                                  const v1::SubmitJobRequest& request,
                                  int64_t unix_ms);
absl::Status SaveJob(Connection& db, const TuningLog::JobProgress& progress);
absl::StatusOr<TuningLog::StoredJob> GetJob(Connection& db, int64_t job_id);
absl::StatusOr<std::vector<TuningLog::StoredJob>> ListJobs(Connection& db);

absl::StatusOr<int64_t> ReserveOrdinals(Connection& db, int64_t job_id,
                                        int task, int64_t count);

// Ordinals of the task below it were, or may have been, handed out.
absl::StatusOr<int64_t> NextOrdinal(Connection& db, int64_t job_id, int task);
absl::StatusOr<bool> HasJob(Connection& db, int64_t job_id);

// Whether the log was restored and the trial, of a job of before, may have been
// measured after the backup was made.
absl::StatusOr<bool> RestoreMayHaveLost(Connection& db, int64_t job_id,
                                        int task, int64_t ordinal);

// From here on, new jobs have numbers and the log's jobs ordinals as if `jobs`
// and `ordinals` more of them had been handed out. One transaction of its own.
absl::Status SkipHandedOut(Connection& db, int64_t jobs, int64_t ordinals);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_JOB_STORE_H_
