// What a board's history says that its state does not.
#ifndef REGATTA_CLIENT_CLI_DOCTOR_EVENTS_H_
#define REGATTA_CLIENT_CLI_DOCTOR_EVENTS_H_

#include <vector>

#include "client/cli/doctor/doctor.h"
#include "regatta/v1/device_control.pb.h"

namespace regatta::cli {

// `history` is of one device, oldest first. "power hook": the last order to
// switch its power, where the hook failed at it and the board is not back
// since.
std::vector<Finding> ExamineEvents(const v1::DeviceHistoryResponse& history);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_DOCTOR_EVENTS_H_
