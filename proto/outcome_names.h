// Spellings of enumerations where people, scripts and the log see them.
#ifndef REGATTA_PROTO_OUTCOME_NAMES_H_
#define REGATTA_PROTO_OUTCOME_NAMES_H_

#include <optional>
#include <string>
#include <string_view>

#include "regatta/v1/device_control.pb.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "regatta/v1/trial.pb.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta {

// "ok", "compile_error", ...
std::string OutcomeName(v1::Outcome outcome);
std::optional<v1::Outcome> ParseOutcome(std::string_view name);
// The schedule's own doing: counts for budgets, cost models and best tables.
bool IsCandidateOutcome(v1::Outcome outcome);

// "warm", "cold".
std::string CacheStateName(v1::CacheState cache);
std::optional<v1::CacheState> ParseCacheState(std::string_view name);

// "default", "candidate", "race", "confirm".
std::string TrialKindName(v1::TrialKind kind);

// "queued", "running", ...
std::string JobStateName(v1::JobState state);
std::optional<v1::JobState> ParseJobState(std::string_view name);
// Done, exhausted, failed or cancelled.
bool IsEnded(v1::JobState state);

// "pending", "healthy", ...
std::string TrustName(v1::Trust trust);
// "normal", "draining", ...
std::string OperatorStateName(v1::OperatorState state);
// "online", "lost", ...
std::string PresenceName(v1::Presence presence);
// "approve", "drain", ...
std::string DeviceCommandName(v1::DeviceCommand command);

}  // namespace regatta

#endif  // REGATTA_PROTO_OUTCOME_NAMES_H_
