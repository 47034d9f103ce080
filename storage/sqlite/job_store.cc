#include "storage/sqlite/job_store.h"

#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace regatta::sqlite {
namespace {

absl::Status NoSuchJob(int64_t job_id) {
  return absl::NotFoundError(absl::StrCat("no job ", job_id));
}

// Columns id, request, status, checkpoint.
absl::StatusOr<TuningLog::StoredJob> ReadJob(const Statement& row) {
  TuningLog::StoredJob stored;
  if (!stored.request.ParseFromString(row.Text(1)) ||
      !stored.job.ParseFromString(row.Text(2))) {
    return absl::DataLossError(absl::StrCat(
        "job ", row.Int(0), " cannot be read: its bytes are damaged"));
  }
  stored.job.set_job_id(row.Int(0));
  stored.checkpoint = row.Text(3);
  return stored;
}

absl::StatusOr<std::vector<TuningLog::JobWork>> WorkOf(Connection& db,
                                                       int64_t job_id) {
  ASSIGN_OR_RETURN(Statement list,
                   db.Query("SELECT task, number, bytes FROM job_work WHERE "
                            "job_id = ? ORDER BY task, number",
                            job_id));
  std::vector<TuningLog::JobWork> works;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, list.Step());
    if (!row) return works;
    works.push_back({static_cast<int>(list.Int(0)), list.Int(1), list.Text(2)});
  }
}

}  // namespace

absl::StatusOr<int64_t> CreateJob(Connection& db,
                                  const v1::SubmitJobRequest& request,
                                  int64_t unix_ms) {
  std::optional<std::string> request_id;
  if (!request.request_id().empty()) {
    request_id = request.request_id();
    ASSIGN_OR_RETURN(
        Statement find,
        db.Query("SELECT id FROM job WHERE request_id = ?", *request_id));
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (row) return find.Int(0);
  }
  // Behind the newest and behind what a restore skipped.
  RETURN_IF_ERROR(db.Run(
      "INSERT INTO job(id, request_id, created_unix_ms, request) VALUES ("
      "max(coalesce((SELECT max(id) FROM job), 0), coalesce((SELECT "
      "CAST(value AS INTEGER) FROM meta WHERE name = 'skipped_jobs'), 0)) + 1, "
      "?, ?, ?)",
      request_id, unix_ms, Blob{request.SerializeAsString()}));
  return db.LastInsertId();
}

absl::Status SaveJob(Connection& db, const TuningLog::JobProgress& progress) {
  const int64_t id = progress.job.job_id();
  RETURN_IF_ERROR(db.Run(
      "UPDATE job SET status = ?, checkpoint = ? WHERE id = ?",
      Blob{progress.job.SerializeAsString()}, Blob{progress.checkpoint}, id));
  if (db.Changes() == 0) return NoSuchJob(id);
  if (progress.no_work) {
    return db.Run("DELETE FROM job_work WHERE job_id = ?", id);
  }
  for (const auto& [task, number] : progress.closed) {
    RETURN_IF_ERROR(db.Run(
        "DELETE FROM job_work WHERE job_id = ? AND task = ? AND number = ?", id,
        task, number));
  }
  for (const TuningLog::JobWork& work : progress.opened) {
    RETURN_IF_ERROR(
        db.Run("INSERT OR REPLACE INTO job_work(job_id, task, number, bytes) "
               "VALUES (?, ?, ?, ?)",
               id, work.task, work.number, Blob{work.bytes}));
  }
  return absl::OkStatus();
}

absl::StatusOr<TuningLog::StoredJob> GetJob(Connection& db, int64_t job_id) {
  ASSIGN_OR_RETURN(
      Statement get,
      db.Query("SELECT id, request, status, checkpoint FROM job WHERE id = ?",
               job_id));
  ASSIGN_OR_RETURN(const bool row, get.Step());
  if (!row) return NoSuchJob(job_id);
  ASSIGN_OR_RETURN(TuningLog::StoredJob stored, ReadJob(get));
  ASSIGN_OR_RETURN(stored.work, WorkOf(db, job_id));
  return stored;
}

absl::StatusOr<std::vector<TuningLog::StoredJob>> ListJobs(Connection& db) {
  ASSIGN_OR_RETURN(Statement list,
                   db.Query("SELECT id, request, status, checkpoint FROM job "
                            "ORDER BY id DESC"));
  std::vector<TuningLog::StoredJob> jobs;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, list.Step());
    if (!row) break;
    auto job = ReadJob(list);
    if (!job.ok()) {
      // One damaged row must not hide the others.
      job = TuningLog::StoredJob();
      job->job.set_job_id(list.Int(0));
      job->damage = "its bytes in the tuning log are damaged";
    }
    jobs.push_back(*std::move(job));
  }
  for (TuningLog::StoredJob& job : jobs) {
    ASSIGN_OR_RETURN(job.work, WorkOf(db, job.job.job_id()));
  }
  return jobs;
}

absl::StatusOr<int64_t> ReserveOrdinals(Connection& db, int64_t job_id,
                                        int task, int64_t count) {
  // Keeps the sum far from overflow.
  constexpr int64_t kMost = int64_t{1} << 40;
  if (count < 1 || count > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot reserve ", count, " ordinals; 1 to ", kMost));
  }
  // A task that had none when its log was restored may have had some since.
  ASSIGN_OR_RETURN(
      Statement reserve,
      db.Query("INSERT INTO ordinal(job_id, task, next) VALUES (?1, ?2, ?3 + "
               "CASE WHEN ?1 <= coalesce((SELECT CAST(value AS INTEGER) FROM "
               "meta WHERE name = 'skipped_jobs'), 0) THEN coalesce((SELECT "
               "CAST(value AS INTEGER) FROM meta WHERE name = "
               "'skipped_ordinals'), 0) ELSE 0 END) "
               "ON CONFLICT(job_id, task) DO UPDATE SET next = next + ?3 "
               "RETURNING next - ?3",
               job_id, task, count));
  ASSIGN_OR_RETURN(const bool row, reserve.Step());
  CHECK(row) << "an upsert returned no row";
  return reserve.Int(0);
}

absl::StatusOr<int64_t> NextOrdinal(Connection& db, int64_t job_id, int task) {
  ASSIGN_OR_RETURN(
      Statement find,
      db.Query("SELECT coalesce("
               "(SELECT next FROM ordinal WHERE job_id = ?1 AND task = ?2), "
               "(SELECT CAST(o.value AS INTEGER) FROM meta o JOIN meta j "
               "ON j.name = 'skipped_jobs' AND CAST(j.value AS INTEGER) >= ?1 "
               "WHERE o.name = 'skipped_ordinals'), 0)",
               job_id, task));
  ASSIGN_OR_RETURN(const bool row, find.Step());
  CHECK(row) << "a select without a table returned no row";
  return find.Int(0);
}

absl::StatusOr<bool> HasJob(Connection& db, int64_t job_id) {
  ASSIGN_OR_RETURN(Statement find,
                   db.Query("SELECT 1 FROM job WHERE id = ?", job_id));
  return find.Step();
}

absl::StatusOr<bool> RestoreMayHaveLost(Connection& db, int64_t job_id,
                                        int task, int64_t ordinal) {
  {
    ASSIGN_OR_RETURN(Statement find,
                     db.Query("SELECT 1 FROM meta WHERE name = 'skipped_jobs' "
                              "AND CAST(value AS INTEGER) >= ?",
                              job_id));
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return false;
  }
  ASSIGN_OR_RETURN(const int64_t next, NextOrdinal(db, job_id, task));
  return ordinal < next;
}

absl::Status SkipHandedOut(Connection& db, int64_t jobs, int64_t ordinals) {
  RETURN_IF_ERROR(db.Execute("BEGIN IMMEDIATE"));
  RETURN_IF_ERROR(db.Run("UPDATE ordinal SET next = next + ?", ordinals));
  RETURN_IF_ERROR(
      db.Run("INSERT INTO meta(name, value) VALUES ('skipped_ordinals', ?1) "
             "ON CONFLICT(name) DO UPDATE SET value = CAST(value AS INTEGER) + "
             "CAST(excluded.value AS INTEGER)",
             absl::StrCat(ordinals)));
  RETURN_IF_ERROR(db.Run(
      "INSERT INTO meta(name, value) VALUES ('skipped_jobs', ?1 + coalesce("
      "(SELECT max(id) FROM job), 0)) ON CONFLICT(name) DO UPDATE SET value = "
      "?1 + max(CAST(value AS INTEGER), coalesce((SELECT max(id) FROM job), "
      "0))",
      jobs));
  return db.Execute("COMMIT");
}

}  // namespace regatta::sqlite
