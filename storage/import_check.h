// What an entry of another log must be to be taken in: everything that can be
// told without the log itself.
#ifndef REGATTA_STORAGE_IMPORT_CHECK_H_
#define REGATTA_STORAGE_IMPORT_CHECK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "regatta/v1/log_service.pb.h"
#include "storage/log_exchange.h"
#include "storage/tuning_log.h"

namespace regatta {

struct ImportedRecord {
  v1::TrialResult result;
  int64_t recorded_unix_ms = 0;
};
struct ImportedPublication {
  Publication publication;
  int64_t unix_ms = 0;
};
// Of this very log: it is there, or a restore lost it, or it should not be in
// the file. What a restore lost comes in as another log's would: evidence.
struct OwnTrial {
  std::string trial_id;  // as this log has it, "JOB/TASK/ORDINAL"
  v1::TrialResult result;
  absl::StatusOr<ImportedRecord> evidence;  // or why it is none
};
struct OwnJob {
  v1::LoggedJob job;
};
struct OwnPublication {
  Publication publication;  // trial_id as this log has it
  int64_t unix_ms = 0;
  ImportedPublication evidence;
};
// Head and end of a file: nothing to keep.
struct NothingToKeep {};

using CheckedEntry =
    std::variant<NothingToKeep, OwnTrial, OwnJob, OwnPublication, WorkloadInfo,
                 v1::LoggedJob, ImportedRecord, ImportedPublication>;

// InvalidArgument: the name is empty, too long or holds control characters.
absl::Status CheckImportName(const std::string& name);

// What an import into a log that is not there yet comes to when it brings
// nothing: every entry is refused, or is the head or end of a file. nullopt:
// there is something to store. REQUIRES: the options' name is good.
std::optional<std::vector<v1::ImportVerdict>> VerdictsOnNothing(
    absl::Span<const v1::LogEntry* const> entries,
    const ImportOptions& options);

// Not thread-safe; one per call of Import.
class ImportChecker {
 public:
  ImportChecker(std::string own_log_id, const ImportOptions& options)
      : own_log_id_(std::move(own_log_id)), options_(options) {}

  // InvalidArgument: why the entry is refused.
  absl::StatusOr<CheckedEntry> Check(const v1::LogEntry& entry);

  // Of the records that were checked, each once: the log must know them first.
  const std::map<std::string, WorkloadInfo>& workloads() const {
    return workloads_;
  }

 private:
  absl::StatusOr<const WorkloadInfo*> Describe(const std::string& key,
                                               const std::string& text);
  absl::StatusOr<CheckedEntry> CheckRecord(const v1::LoggedRecord& record);
  // `trial_id`: the name without that of its log.
  absl::StatusOr<ImportedRecord> CheckEvidence(const v1::LoggedRecord& record,
                                               const std::string& trial_id);
  absl::StatusOr<CheckedEntry> CheckPublication(
      const v1::LoggedPublication& entry) const;
  absl::StatusOr<CheckedEntry> CheckJob(const v1::LoggedJob& job) const;

  const std::string own_log_id_;
  const ImportOptions& options_;
  std::map<std::string, WorkloadInfo> workloads_;  // by text
};

}  // namespace regatta

#endif  // REGATTA_STORAGE_IMPORT_CHECK_H_
