#include "storage/validate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

absl::Status CheckKey(const BestKey& key) {
  if (key.workload_key.empty()) {
    return absl::InvalidArgumentError("has no workload_key");
  }
  if (key.device_class.empty()) {
    return absl::InvalidArgumentError("has no device_class");
  }
  if (key.threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", key.threads, " threads; at least 1 is needed"));
  }
  if (key.cache == v1::CACHE_STATE_UNSPECIFIED ||
      !v1::CacheState_IsValid(key.cache)) {
    return absl::InvalidArgumentError("has no cache state");
  }
  return absl::OkStatus();
}

absl::Status CheckBlocks(const v1::TrialResult& result) {
  for (int i = 0; i < result.blocks_size(); ++i) {
    const v1::Block& block = result.blocks(i);
    if (block.throttled()) continue;
    if (block.calls() < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", block.calls(), " calls in kept block ", i));
    }
    if (block.elapsed_ns() < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "has a negative time of ", block.elapsed_ns(), " ns in block ", i));
    }
  }
  return absl::OkStatus();
}

// A time is the median of its kept blocks' times per call, rounded. Why this
// one cannot be, or "". A result without a time or without blocks says nothing.
std::string WhyTimesDisagree(const v1::TrialResult& result) {
  std::vector<double> per_call;  // ns
  for (const v1::Block& block : result.blocks()) {
    if (block.throttled() || block.calls() < 1) continue;
    per_call.push_back(static_cast<double>(block.elapsed_ns()) /
                       static_cast<double>(block.calls()));
  }
  if (per_call.empty() || result.time_ns() <= 0) return "";
  std::sort(per_call.begin(), per_call.end());
  const double low = per_call[(per_call.size() - 1) / 2];
  const double high = per_call[per_call.size() / 2];
  const auto time_ns = static_cast<double>(result.time_ns());
  // Rounded, and at least 1.
  if (time_ns >= low - 1 && time_ns <= high + 1) return "";
  return absl::StrCat("time_ns is ", result.time_ns(),
                      ", the median of its blocks ", (low + high) / 2);
}

absl::Status CheckResult(const v1::TrialResult& result) {
  if (absl::Status status = CheckKey(KeyOf(result)); !status.ok()) {
    return status;
  }
  if (result.outcome() == v1::OUTCOME_UNSPECIFIED ||
      !v1::Outcome_IsValid(result.outcome())) {
    return absl::InvalidArgumentError(
        absl::StrCat("has no known outcome (", result.outcome(), ")"));
  }
  if (result.time_ns() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("has a negative time of ", result.time_ns(), " ns"));
  }
  if (absl::Status status = CheckBlocks(result); !status.ok()) return status;
  const std::string why = WhyTimesDisagree(result);
  if (why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("has times that disagree: ", why));
}

}  // namespace

BestKey KeyOf(const v1::TrialResult& result) {
  const v1::TrialSpec& spec = result.spec();
  return {.workload_key = spec.workload_key(),
          .device_class = result.device_class().empty() ? spec.device_class()
                                                        : result.device_class(),
          .threads = spec.policy().threads(),
          .cache = spec.policy().cache(),
          .imported = absl::StartsWith(result.provenance(), kImportProvenance)};
}

absl::Status ValidateResult(const v1::TrialResult& result) {
  if (result.spec().trial_id().empty()) {
    return absl::InvalidArgumentError("a result has no trial_id");
  }
  const absl::Status status = CheckResult(result);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("trial ", result.spec().trial_id(), " ", status.message()));
}

absl::Status ValidateWorkload(const WorkloadInfo& workload) {
  if (workload.key.empty()) {
    return absl::InvalidArgumentError("a workload has no key");
  }
  if (workload.text.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("workload ", workload.key, " has no text"));
  }
  for (const int64_t extent : workload.extents) {
    if (extent < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "workload ", workload.key, " has an extent of ", extent));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidatePublication(const Publication& publication) {
  std::string wrong;
  const absl::Status key = CheckKey(publication.key);
  if (publication.trial_id.empty()) {
    return absl::InvalidArgumentError("a publication has no trial_id");
  } else if (!key.ok()) {
    wrong = std::string(key.message());
  } else if (publication.time_ns < 1) {
    wrong = absl::StrCat("has a time of ", publication.time_ns, " ns");
  } else if ((publication.low_ns != 0 || publication.high_ns != 0) &&
             !(0 < publication.low_ns &&
               publication.low_ns <= publication.time_ns &&
               publication.time_ns <= publication.high_ns)) {
    wrong = absl::StrCat("has an interval of ", publication.low_ns, " to ",
                         publication.high_ns, " ns around ",
                         publication.time_ns, " ns");
  } else if (publication.default_ns < 0) {
    wrong = absl::StrCat("has a default of ", publication.default_ns, " ns");
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("publication of trial ", publication.trial_id, " ", wrong));
}

bool IsEligible(const v1::TrialResult& result) {
  return result.outcome() == v1::OUTCOME_OK && !result.abandoned() &&
         result.time_ns() > 0;
}

}  // namespace regatta
