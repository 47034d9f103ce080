#include "storage/import_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "storage/import_content.h"
#include "storage/validate.h"

namespace regatta {
namespace {

constexpr size_t kMaxNameBytes = 100;
constexpr size_t kMaxLogIdBytes = 64;

struct TrialName {
  std::string log_id;
  std::string trial_id;  // "JOB/TASK/ORDINAL"
};

bool IsLogId(std::string_view id) {
  return !id.empty() && id.size() <= kMaxLogIdBytes &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_';
         });
}

absl::StatusOr<TrialName> SplitTrialName(const std::string& name) {
  const size_t colon = name.find(':');
  if (colon == std::string::npos || !IsLogId(name.substr(0, colon)) ||
      colon + 1 == name.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("trial_id '", Utf8Beginning(name, 120),
                     "' is not of the form LOGID:JOB/TASK/ORDINAL"));
  }
  return TrialName{name.substr(0, colon), name.substr(colon + 1)};
}

}  // namespace

absl::Status CheckImportName(const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name of an import has ", name.size(),
                     " bytes; it must have 1 to ", kMaxNameBytes));
  }
  for (const unsigned char c : name) {
    if (absl::ascii_iscntrl(c)) {
      return absl::InvalidArgumentError(
          "the name of an import holds control characters");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const WorkloadInfo*> ImportChecker::Describe(
    const std::string& key, const std::string& text) {
  auto found = workloads_.find(text);
  if (found == workloads_.end()) {
    auto described = options_.describe(text);
    if (!described.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the workload '", Utf8Beginning(text, 120),
          "' cannot be read: ", std::string(described.status().message())));
    }
    RETURN_IF_ERROR(ValidateWorkload(*described));
    if (described->key != key) {
      return absl::InvalidArgumentError(absl::StrCat(
          "workload_key '", key.substr(0, 80),
          "' is not that of the workload's text, which is ", described->key));
    }
    found = workloads_.emplace(text, *std::move(described)).first;
  }
  if (found->second.key != key) {
    return absl::InvalidArgumentError(absl::StrCat(
        "workload_key '", key.substr(0, 80),
        "' is not that of the workload's text, which is ", found->second.key));
  }
  return &found->second;
}

absl::StatusOr<CheckedEntry> ImportChecker::CheckRecord(
    const v1::LoggedRecord& record) {
  const v1::TrialSpec& spec = record.result().spec();
  ASSIGN_OR_RETURN(const TrialName name, SplitTrialName(spec.trial_id()));
  absl::StatusOr<ImportedRecord> evidence =
      CheckEvidence(record, name.trial_id);
  if (name.log_id == own_log_id_) {
    return OwnTrial{name.trial_id, record.result(), std::move(evidence)};
  }
  RETURN_IF_ERROR(evidence.status());
  return *std::move(evidence);
}

absl::StatusOr<ImportedRecord> ImportChecker::CheckEvidence(
    const v1::LoggedRecord& record, const std::string& trial_id) {
  const v1::TrialSpec& spec = record.result().spec();
  const std::string expected =
      absl::StrCat(spec.job_id(), "/", spec.task(), "/", spec.ordinal());
  if (trial_id != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat("trial_id says ", trial_id.substr(0, 80),
                     ", its job, task and ordinal say ", expected));
  }
  if (record.recorded_unix_ms() < 0) {
    return absl::InvalidArgumentError("recorded_unix_ms is negative");
  }
  ImportedRecord imported{record.result(), record.recorded_unix_ms()};
  imported.result.set_provenance(
      absl::StrCat(kImportProvenance, options_.name));
  RETURN_IF_ERROR(ValidateResult(imported.result));
  RETURN_IF_ERROR(Describe(spec.workload_key(), spec.workload()).status());
  if (options_.check_spec) RETURN_IF_ERROR(options_.check_spec(spec));
  return imported;
}

absl::StatusOr<CheckedEntry> ImportChecker::CheckPublication(
    const v1::LoggedPublication& entry) const {
  ASSIGN_OR_RETURN(const TrialName name, SplitTrialName(entry.trial_id()));
  const bool own = name.log_id == own_log_id_;
  Publication to;
  to.key = {.workload_key = entry.workload_key(),
            .device_class = entry.device_class(),
            .threads = entry.policy().threads(),
            .cache = entry.policy().cache(),
            .imported = !own};
  to.trial_id = own ? name.trial_id : entry.trial_id();
  to.time_ns = entry.time_ns();
  to.low_ns = entry.low_ns();
  to.high_ns = entry.high_ns();
  to.default_ns = entry.default_ns();
  to.speedup = entry.speedup();
  to.speedup_low = entry.speedup_low();
  to.speedup_high = entry.speedup_high();
  to.job_id = entry.job_id();
  RETURN_IF_ERROR(ValidatePublication(to));
  // SQLite keeps no NaN, and a ratio below 0 is none.
  for (const double ratio :
       {entry.speedup(), entry.speedup_low(), entry.speedup_high()}) {
    if (!(ratio >= 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("publication of trial ", entry.trial_id(),
                       " has a speedup of ", ratio));
    }
  }
  if (!own) return ImportedPublication{std::move(to), entry.unix_ms()};
  ImportedPublication evidence{to, entry.unix_ms()};
  evidence.publication.key.imported = true;
  evidence.publication.trial_id = entry.trial_id();
  return OwnPublication{std::move(to), entry.unix_ms(), std::move(evidence)};
}

absl::StatusOr<CheckedEntry> ImportChecker::CheckJob(
    const v1::LoggedJob& job) const {
  if (!IsLogId(job.log_id())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "log_id '", job.log_id().substr(0, 80), "' is no name of a log"));
  }
  if (job.job_id() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("job_id is ", job.job_id(), "; at least 1 is needed"));
  }
  if (job.log_id() == own_log_id_) return OwnJob{job};
  return job;
}

absl::StatusOr<CheckedEntry> ImportChecker::Check(const v1::LogEntry& entry) {
  RETURN_IF_ERROR(CheckContent(entry));
  switch (entry.entry_case()) {
    case v1::LogEntry::kLog:
      if (!IsLogId(entry.log().log_id())) {
        return absl::InvalidArgumentError("log_id is no name of a log");
      }
      return NothingToKeep{};
    case v1::LogEntry::kEnd:
      return NothingToKeep{};
    case v1::LogEntry::kWorkload: {
      ASSIGN_OR_RETURN(
          const WorkloadInfo* workload,
          Describe(entry.workload().key(), entry.workload().text()));
      return *workload;
    }
    case v1::LogEntry::kJob:
      return CheckJob(entry.job());
    case v1::LogEntry::kRecord:
      return CheckRecord(entry.record());
    case v1::LogEntry::kPublication:
      return CheckPublication(entry.publication());
    case v1::LogEntry::ENTRY_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the entry is empty");
}

std::optional<std::vector<v1::ImportVerdict>> VerdictsOnNothing(
    absl::Span<const v1::LogEntry* const> entries,
    const ImportOptions& options) {
  ImportChecker checker(/*own_log_id=*/"", options);
  std::vector<v1::ImportVerdict> verdicts;
  for (const v1::LogEntry* entry : entries) {
    const absl::StatusOr<CheckedEntry> checked = checker.Check(*entry);
    v1::ImportVerdict& verdict = verdicts.emplace_back();
    verdict.set_status(v1::ImportVerdict::STATUS_REFUSED);
    if (!checked.ok()) {
      verdict.set_reason(std::string(checked.status().message()));
    } else if (std::holds_alternative<NothingToKeep>(*checked)) {
      verdict.set_status(v1::ImportVerdict::STATUS_KNOWN);
    } else if (entry->has_publication()) {
      verdict.set_reason(absl::StrCat(
          "its trial ", entry->publication().trial_id(), " is not in the log"));
    } else {
      return std::nullopt;
    }
  }
  return verdicts;
}

}  // namespace regatta
