#include "device_agent/loop/admission.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "proto/device_build.h"
#include "proto/utf8_texts.h"

namespace regatta {
namespace {

constexpr int kMaxTrials = 64;
// Leaves room for a result beside its spec in one message.
constexpr size_t kMaxAssignmentBytes = 768 << 10;

const v1::DeviceInfo* FindDevice(const v1::Hello& hello,
                                 const std::string& device_id) {
  for (const v1::DeviceInfo& device : hello.devices()) {
    if (device.device_id() == device_id) return &device;
  }
  return nullptr;
}

std::string WhyMalformed(const v1::Assignment& assignment) {
  if (assignment.assignment_id().empty()) return "no assignment_id";
  if (assignment.trials().empty()) return "no trials";
  if (assignment.trials_size() > kMaxTrials) {
    return absl::StrCat(assignment.trials_size(), " trials, at most ",
                        kMaxTrials);
  }
  if (assignment.mode() != v1::ASSIGNMENT_MODE_SCREEN &&
      assignment.mode() != v1::ASSIGNMENT_MODE_INTERLEAVE) {
    return absl::StrCat("unknown mode ", static_cast<int>(assignment.mode()));
  }
  if (assignment.attempt() < 1) {
    return absl::StrCat("attempt ", assignment.attempt());
  }
  if (assignment.ByteSizeLong() > kMaxAssignmentBytes) {
    return absl::StrCat(assignment.ByteSizeLong(), " bytes, at most ",
                        kMaxAssignmentBytes);
  }
  std::set<std::string> ids;
  for (const v1::TrialSpec& trial : assignment.trials()) {
    if (trial.trial_id().empty()) return "a trial without id";
    if (trial.workload().empty()) {
      return absl::StrCat("trial ", trial.trial_id(), " without workload");
    }
    if (!ids.insert(trial.trial_id()).second) {
      return absl::StrCat("trial ", trial.trial_id(), " twice");
    }
  }
  return "";
}

std::string WhyUnfitTrial(const v1::TrialSpec& trial, const v1::Hello& hello,
                          const v1::DeviceInfo& device) {
  const DeviceBuild build = BuildOf(device, hello);
  if (trial.compiler_version() != build.compiler_version) {
    return absl::StrCat("compiler version differs: trial ", trial.trial_id(),
                        " needs \"", trial.compiler_version(),
                        "\", this agent has \"", build.compiler_version, "\"");
  }
  if (trial.schedule().space() != build.space ||
      trial.schedule().space_version() != build.space_version) {
    return absl::StrCat("space version differs: trial ", trial.trial_id(),
                        " needs ", trial.schedule().space(), " ",
                        trial.schedule().space_version(), ", this agent has ",
                        build.space, " ", build.space_version);
  }
  if (trial.device_class() != device.device_class()) {
    return absl::StrCat("device class differs: trial ", trial.trial_id(),
                        " is for ", trial.device_class(), ", ",
                        device.device_id(), " is ", device.device_class());
  }
  // Boards of one class may differ in features all the same; code for those
  // that this one has not would crash, and its time would be another's.
  if (trial.target() != device.target()) {
    return absl::StrCat("target differs: trial ", trial.trial_id(), " is for ",
                        trial.target(), ", ", device.device_id(), " is ",
                        device.target());
  }
  return "";
}

}  // namespace

std::string WhyUnfit(const v1::Assignment& assignment, const v1::Hello& hello) {
  if (std::string why = WhyMalformed(assignment); !why.empty()) {
    return absl::StrCat("malformed: ", why);
  }
  const v1::DeviceInfo* device = FindDevice(hello, assignment.device_id());
  if (device == nullptr) {
    return absl::StrCat("unknown device \"", assignment.device_id(), "\"");
  }
  if (BuildOf(*device, hello).compiler_version.empty()) {
    return "no build worker here";
  }
  for (const v1::TrialSpec& trial : assignment.trials()) {
    if (std::string why = WhyUnfitTrial(trial, hello, *device); !why.empty()) {
      return why;
    }
  }
  return "";
}

int64_t CreditOf(const v1::Hello& hello, const std::string& device_id) {
  const v1::DeviceInfo* device = FindDevice(hello, device_id);
  return device == nullptr ? 1 : std::max(1, device->credit());
}

void CompleteResult(const v1::Hello& hello, int64_t max_bytes,
                    v1::TrialResult& result) {
  if (result.boot_id().empty()) result.set_boot_id(hello.boot_id());
  // A message with such a result would be refused whole, time and again.
  result.set_attempt(std::max(1, result.attempt()));
  if (!v1::Outcome_IsValid(result.outcome()) ||
      result.outcome() == v1::OUTCOME_UNSPECIFIED) {
    result.set_outcome(v1::OUTCOME_DEVICE_FAULT);
    result.set_detail("the runner gave no outcome");
  }
  if (result.provenance().empty()) result.set_provenance("agent");
  v1::Environment& environment = *result.mutable_environment();
  if (environment.agent_version().empty()) {
    environment.set_agent_version(hello.agent_version());
  }
  if (environment.sandbox().empty()) environment.set_sandbox(hello.sandbox());
  // Details quote what candidates, compilers and drivers say.
  MakeTextsUtf8(result);
  const auto bytes = static_cast<int64_t>(result.ByteSizeLong());
  if (bytes <= max_bytes) return;
  result.clear_blocks();
  result.clear_environment();
  result.set_time_ns(0);
  result.set_outcome(v1::OUTCOME_DEVICE_FAULT);
  result.set_detail(absl::StrCat("the result of ", bytes,
                                 " bytes is longer than a message may be (",
                                 max_bytes, ")"));
}

}  // namespace regatta
