#include "storage/import_content.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

absl::Status CheckName(const char* field, const std::string& text) {
  if (std::none_of(text.begin(), text.end(),
                   [](unsigned char c) { return absl::ascii_iscntrl(c); })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, " holds control characters"));
}

absl::Status CheckFinite(const char* field, double value) {
  if (std::isfinite(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", not a finite number"));
}

absl::Status CheckRecord(const v1::TrialResult& result) {
  const v1::TrialSpec& spec = result.spec();
  for (const auto& [field, text] :
       {std::pair("trial_id", spec.trial_id()),
        std::pair("device_class", spec.device_class()),
        std::pair("device_class", result.device_class()),
        std::pair("device_id", result.device_id()),
        std::pair("boot_id", result.boot_id()),
        std::pair("target", spec.target()),
        std::pair("compiler_version", spec.compiler_version()),
        std::pair("space", spec.schedule().space()),
        std::pair("schedule", spec.schedule().text()),
        std::pair("binary_hash", result.binary_hash())}) {
    RETURN_IF_ERROR(CheckName(field, text));
  }
  for (const v1::SensorReading& reading : result.environment().sensors()) {
    RETURN_IF_ERROR(CheckFinite("a sensor's reading", reading.before()));
    RETURN_IF_ERROR(CheckFinite("a sensor's reading", reading.after()));
  }
  if (result.outcome() == v1::OUTCOME_OK) {
    RETURN_IF_ERROR(CheckFinite("max_error", result.max_error()));
  }
  return absl::OkStatus();
}

absl::Status CheckVerdict(const v1::LoggedPublication& verdict) {
  RETURN_IF_ERROR(CheckName("device_class", verdict.device_class()));
  RETURN_IF_ERROR(CheckFinite("speedup", verdict.speedup()));
  RETURN_IF_ERROR(CheckFinite("speedup_low", verdict.speedup_low()));
  RETURN_IF_ERROR(CheckFinite("speedup_high", verdict.speedup_high()));
  const bool known = verdict.speedup_low() != 0 || verdict.speedup_high() != 0;
  if (known && (verdict.speedup_low() > verdict.speedup() ||
                verdict.speedup() > verdict.speedup_high())) {
    return absl::InvalidArgumentError(
        absl::StrCat("speedup is ", verdict.speedup(), ", outside ",
                     verdict.speedup_low(), " to ", verdict.speedup_high()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckContent(const v1::LogEntry& entry) {
  if (entry.has_record()) return CheckRecord(entry.record().result());
  if (entry.has_publication()) return CheckVerdict(entry.publication());
  if (entry.has_job()) {
    return CheckName("the job's name", entry.job().request().name());
  }
  return absl::OkStatus();
}

}  // namespace regatta
