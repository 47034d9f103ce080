// A tuning log that ends the server at a chosen write: before it happens, or
// after it is durable but before anyone knows.
#ifndef REGATTA_TESTS_SERVER_SUPPORT_CRASHING_LOG_H_
#define REGATTA_TESTS_SERVER_SUPPORT_CRASHING_LOG_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "storage/tuning_log.h"

namespace regatta::testing {

// Thrown through the server, as a kill would end it. Nothing catches it but the
// test, which destroys the server's objects and makes new ones.
struct Crash {};

class CrashingLog : public TuningLog {
 public:
  explicit CrashingLog(TuningLog* log) : log_(log) {}

  // Crashes at the n-th write from now (1: the next); 0 never.
  void CrashAt(int64_t n, bool after) {
    left_ = n;
    after_ = after;
  }
  bool crashed() const { return left_ == -1; }
  // Every write fails with this until it is cleared.
  void FailWith(absl::Status status) { failure_ = std::move(status); }
  // Every read of one job likewise.
  void FailReadsOfJobsWith(absl::Status status) {
    read_failure_ = std::move(status);
  }
  int64_t writes() const { return writes_; }

  std::string LogId() const override { return log_->LogId(); }
  absl::Status PutWorkload(const WorkloadInfo& workload) override {
    return Write<absl::Status>([&] { return log_->PutWorkload(workload); });
  }
  absl::StatusOr<std::vector<AppendStatus>> Append(
      absl::Span<const v1::TrialResult> results, int64_t unix_ms) override {
    return Write<absl::StatusOr<std::vector<AppendStatus>>>(
        [&] { return log_->Append(results, unix_ms); });
  }
  absl::Status Publish(const Publication& publication,
                       int64_t unix_ms) override {
    return Write<absl::Status>(
        [&] { return log_->Publish(publication, unix_ms); });
  }
  absl::StatusOr<std::optional<BestKnown>> Best(
      const BestKey& key) const override {
    return log_->Best(key);
  }
  absl::StatusOr<std::vector<BestKnown>> BestOfWorkload(
      std::string_view key) const override {
    return log_->BestOfWorkload(key);
  }
  absl::StatusOr<std::vector<BestKnown>> BestOfNeighbours(
      const WorkloadInfo& workload, const BestKey& key,
      int limit) const override {
    return log_->BestOfNeighbours(workload, key, limit);
  }
  absl::Status ForEachBest(
      const std::function<bool(const WorkloadInfo&, const BestKnown&)>& visit)
      const override {
    return log_->ForEachBest(visit);
  }
  absl::StatusOr<std::vector<ClassFacts>> FactsOfClasses() const override {
    return log_->FactsOfClasses();
  }
  absl::StatusOr<int64_t> RebuildBest(const UpkeepProgress& progress) override {
    return log_->RebuildBest(progress);
  }
  const LogUpkeep& upkeep() const override { return log_->upkeep(); }
  LogExchange& exchange() override { return log_->exchange(); }
  void NameHolder(const std::string& holder) override {
    log_->NameHolder(holder);
  }
  void Seal(const absl::Status& why) override { log_->Seal(why); }
  absl::Status ForEachRecord(
      const RecordFilter& filter,
      const std::function<bool(const StoredRecord&)>& visit) const override {
    return log_->ForEachRecord(filter, visit);
  }
  absl::StatusOr<int64_t> CountRecords() const override {
    return log_->CountRecords();
  }
  absl::StatusOr<std::vector<std::string>> DeviceClasses(
      bool imported) const override {
    return log_->DeviceClasses(imported);
  }
  absl::StatusOr<int64_t> CreateJob(const v1::SubmitJobRequest& request,
                                    int64_t unix_ms) override {
    return Write<absl::StatusOr<int64_t>>(
        [&] { return log_->CreateJob(request, unix_ms); });
  }
  absl::Status SaveJobs(absl::Span<const JobProgress> jobs) override {
    return Write<absl::Status>([&] { return log_->SaveJobs(jobs); });
  }
  absl::StatusOr<StoredJob> GetJob(int64_t job_id) const override {
    if (!read_failure_.ok()) return read_failure_;
    return log_->GetJob(job_id);
  }
  absl::StatusOr<std::vector<StoredJob>> ListJobs() const override {
    return log_->ListJobs();
  }
  absl::StatusOr<int64_t> ReserveOrdinals(int64_t job_id, int task,
                                          int64_t count) override {
    return Write<absl::StatusOr<int64_t>>(
        [&] { return log_->ReserveOrdinals(job_id, task, count); });
  }

 private:
  template <typename Result>
  Result Write(const std::function<Result()>& write) {
    if (!failure_.ok()) return failure_;
    ++writes_;
    const bool now = left_ > 0 && --left_ == 0;
    if (now) left_ = -1;
    if (now && !after_) throw Crash();
    Result result = write();
    if (now) throw Crash();
    return result;
  }

  TuningLog* log_;
  int64_t left_ = 0;
  bool after_ = false;
  int64_t writes_ = 0;
  absl::Status failure_, read_failure_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SERVER_SUPPORT_CRASHING_LOG_H_
