// What must hold of a fleet of real processes after whatever happened to it:
// each trial is recorded once, and what a board was told is stored is recorded.
#ifndef REGATTA_TESTS_SUPPORT_FLEET_CHECKS_H_
#define REGATTA_TESTS_SUPPORT_FLEET_CHECKS_H_

#include <nlohmann/json.hpp>
#include <string>

namespace regatta::testing {

// `records`: as `regatta records --json` lists those of one workload of one
// job. Each trial, and each candidate's schedule, is there once. Returns how
// many candidates came to an outcome of their own.
int ExpectEachTrialOnce(const nlohmann::json& records);

// The agent that keeps its state in this folder has ended, and its trials were
// of that workload. What it has in its spool was acknowledged, and what was
// acknowledged is among the records.
void ExpectAcknowledgedAreRecorded(const std::string& agent_state,
                                   const nlohmann::json& records);

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SUPPORT_FLEET_CHECKS_H_
