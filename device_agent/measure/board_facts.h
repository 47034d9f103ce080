// What is noted beside every result: this board's settings.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_BOARD_FACTS_H_
#define REGATTA_DEVICE_AGENT_MEASURE_BOARD_FACTS_H_

#include <string>

#include "regatta/v1/fleet_service.pb.h"
#include "regatta/v1/trial.pb.h"

namespace regatta {

// What does not change while the agent runs. `sandbox`: features in force.
v1::Environment BoardEnvironment(const std::string& sandbox,
                                 const v1::DeviceInfo& device);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_BOARD_FACTS_H_
