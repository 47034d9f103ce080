// The tuning log in an SQLite file: the default backend.
//
// One process holds the file ("PATH.lock"), one connection writes, the others
// only read. open_sqlite_log.cc checks and opens the file; this class is what
// runs on it.
#ifndef REGATTA_STORAGE_SQLITE_SQLITE_TUNING_LOG_H_
#define REGATTA_STORAGE_SQLITE_SQLITE_TUNING_LOG_H_

#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/exchange.h"
#include "storage/sqlite/file_lock.h"
#include "storage/sqlite/file_watch.h"
#include "storage/sqlite/group_writer.h"
#include "storage/sqlite/held_states.h"
#include "storage/sqlite/reader_pool.h"
#include "storage/sqlite/upkeep.h"
#include "storage/tuning_log.h"

namespace regatta::sqlite {

// Opens or creates the log at `path`; errors as OpenTuningLog says.
absl::StatusOr<std::unique_ptr<TuningLog>> OpenSqliteLog(
    const std::string& path, const OpenOptions& options);
// With other limits of the write-ahead log.
absl::StatusOr<std::unique_ptr<TuningLog>> OpenSqliteLog(
    const std::string& path, const OpenOptions& options, WalLimits limits);

class SqliteTuningLog : public TuningLog {
 public:
  // `writer` is null for a log that is only looked at: what would write is
  // FailedPrecondition then.
  SqliteTuningLog(std::string path, std::string log_id,
                  std::unique_ptr<FileLock> lock,
                  std::unique_ptr<Connection> writer,
                  Connection::Mode reader_mode, WalLimits limits = {});

  std::string LogId() const override { return log_id_; }
  absl::Status PutWorkload(const WorkloadInfo& workload) override;
  absl::StatusOr<std::vector<AppendStatus>> Append(
      absl::Span<const v1::TrialResult> results,
      int64_t recorded_unix_ms) override;
  absl::Status Publish(const Publication& publication,
                       int64_t unix_ms) override;
  absl::StatusOr<std::optional<BestKnown>> Best(
      const BestKey& key) const override;
  absl::StatusOr<std::vector<BestKnown>> BestOfWorkload(
      std::string_view workload_key) const override;
  absl::StatusOr<std::vector<BestKnown>> BestOfNeighbours(
      const WorkloadInfo& workload, const BestKey& key,
      int limit) const override;
  absl::Status ForEachBest(
      const std::function<bool(const WorkloadInfo&, const BestKnown&)>& visit)
      const override;
  absl::StatusOr<std::vector<ClassFacts>> FactsOfClasses() const override;
  absl::StatusOr<int64_t> RebuildBest(const UpkeepProgress& progress) override;
  const LogUpkeep& upkeep() const override { return upkeep_; }
  LogExchange& exchange() override { return exchange_; }
  void NameHolder(const std::string& holder) override {
    lock_->NameHolder(holder);
  }
  void Seal(const absl::Status& why) override;
  absl::Status ForEachRecord(
      const RecordFilter& filter,
      const std::function<bool(const StoredRecord&)>& visit) const override;
  absl::StatusOr<int64_t> CountRecords() const override;
  absl::StatusOr<std::vector<std::string>> DeviceClasses(
      bool imported) const override;
  absl::StatusOr<int64_t> CreateJob(const v1::SubmitJobRequest& request,
                                    int64_t unix_ms) override;
  absl::Status SaveJobs(absl::Span<const JobProgress> jobs) override;
  absl::StatusOr<StoredJob> GetJob(int64_t job_id) const override;
  absl::StatusOr<std::vector<StoredJob>> ListJobs() const override;
  absl::StatusOr<int64_t> ReserveOrdinals(int64_t job_id, int task,
                                          int64_t count) override;

 private:
  absl::Status Write(const std::function<absl::Status(Connection&)>& operation);

  const std::string path_;
  const std::string log_id_;
  FileWatch watch_;
  std::mutex seal_mutex_;
  absl::Status sealed_;  // why nothing is stored; OK: it is
  // Destroyed from the last to the first: the readers close before the writer,
  // and the lock goes when the file is closed.
  std::unique_ptr<FileLock> lock_;
  HeldStates held_;
  std::unique_ptr<GroupWriter> writer_;
  mutable ReaderPool readers_;
  const SqliteUpkeep upkeep_;
  SqliteExchange exchange_;
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_SQLITE_TUNING_LOG_H_
