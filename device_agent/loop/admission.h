// What an agent checks of an assignment and of a result, apart from its own
// state. Pure functions.
#ifndef REGATTA_DEVICE_AGENT_LOOP_ADMISSION_H_
#define REGATTA_DEVICE_AGENT_LOOP_ADMISSION_H_

#include <cstdint>
#include <string>

#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

// Why the agent that greets with `hello` cannot run this assignment, for people
// ("compiler version differs: ..."); "" when it can.
std::string WhyUnfit(const v1::Assignment& assignment, const v1::Hello& hello);

// Assignments that the device may hold at once, at least 1.
int64_t CreditOf(const v1::Hello& hello, const std::string& device_id);

// Fills in what the runner left open (boot, agent version, provenance) and
// makes its texts UTF-8. A result too long for one message of `max_bytes`
// becomes a device_fault that says so.
void CompleteResult(const v1::Hello& hello, int64_t max_bytes,
                    v1::TrialResult& result);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_ADMISSION_H_
