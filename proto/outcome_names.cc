#include "proto/outcome_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace regatta {
namespace {

// The enumerator's name without its prefix, in lower case.
template <typename Enum>
std::string ShortName(const std::string& full, std::string_view prefix) {
  return absl::AsciiStrToLower(
      absl::StripPrefix(full, absl::string_view(prefix.data(), prefix.size())));
}

template <typename Enum>
std::optional<Enum> ParseShort(std::string_view name, std::string_view prefix,
                               bool (*parse)(google::protobuf::ConstStringParam,
                                             Enum*)) {
  Enum value;
  const std::string full =
      std::string(prefix) + absl::AsciiStrToUpper(std::string(name));
  if (absl::AsciiStrToLower(std::string(name)) != name ||
      !parse(full, &value) || static_cast<int>(value) == 0) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string OutcomeName(v1::Outcome outcome) {
  return ShortName<v1::Outcome>(v1::Outcome_Name(outcome), "OUTCOME_");
}

std::optional<v1::Outcome> ParseOutcome(std::string_view name) {
  return ParseShort<v1::Outcome>(name, "OUTCOME_", &v1::Outcome_Parse);
}

bool IsCandidateOutcome(v1::Outcome outcome) {
  return outcome >= v1::OUTCOME_OK && outcome <= v1::OUTCOME_DUPLICATE_BINARY;
}

std::string CacheStateName(v1::CacheState cache) {
  return ShortName<v1::CacheState>(v1::CacheState_Name(cache), "CACHE_STATE_");
}

std::optional<v1::CacheState> ParseCacheState(std::string_view name) {
  return ParseShort<v1::CacheState>(name, "CACHE_STATE_",
                                    &v1::CacheState_Parse);
}

std::string TrialKindName(v1::TrialKind kind) {
  return ShortName<v1::TrialKind>(v1::TrialKind_Name(kind), "TRIAL_KIND_");
}

std::string JobStateName(v1::JobState state) {
  return ShortName<v1::JobState>(v1::JobState_Name(state), "JOB_STATE_");
}

std::optional<v1::JobState> ParseJobState(std::string_view name) {
  return ParseShort<v1::JobState>(name, "JOB_STATE_", &v1::JobState_Parse);
}

std::string TrustName(v1::Trust trust) {
  return ShortName<v1::Trust>(v1::Trust_Name(trust), "TRUST_");
}

std::string OperatorStateName(v1::OperatorState state) {
  return ShortName<v1::OperatorState>(v1::OperatorState_Name(state),
                                      "OPERATOR_STATE_");
}

std::string PresenceName(v1::Presence presence) {
  return ShortName<v1::Presence>(v1::Presence_Name(presence), "PRESENCE_");
}

std::string DeviceCommandName(v1::DeviceCommand command) {
  return ShortName<v1::DeviceCommand>(v1::DeviceCommand_Name(command),
                                      "DEVICE_COMMAND_");
}

bool IsEnded(v1::JobState state) {
  return state == v1::JOB_STATE_DONE || state == v1::JOB_STATE_EXHAUSTED ||
         state == v1::JOB_STATE_FAILED || state == v1::JOB_STATE_CANCELLED;
}

}  // namespace regatta
