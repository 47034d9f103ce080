// What is known of a board, through the tracker.
#ifndef REGATTA_CLIENT_CLI_DOCTOR_DEVICE_H_
#define REGATTA_CLIENT_CLI_DOCTOR_DEVICE_H_

#include <vector>

#include "client/cli/doctor/doctor.h"
#include "regatta/v1/dispatch_service.pb.h"

namespace regatta::cli {

// `fleet`: who answered, to agree with. Each finding's check begins with its
// area: "presence", "work", "versions", "clock", "health",
// "noise", "measuring", "limits", "sandbox FEATURE".
std::vector<Finding> ExamineDevice(const v1::DeviceStatus& device,
                                   const v1::ListDevicesResponse& fleet);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_DOCTOR_DEVICE_H_
