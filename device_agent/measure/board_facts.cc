#include "device_agent/measure/board_facts.h"

#include <sys/utsname.h>

#include "device_agent/measure/trial_timer.h"

namespace regatta {

v1::Environment BoardEnvironment(const std::string& sandbox,
                                 const v1::DeviceInfo& device) {
  v1::Environment environment;
  environment.set_agent_version(REGATTA_VERSION);
  environment.set_measure_protocol(kMeasureProtocol);
  utsname names;
  if (uname(&names) == 0) environment.set_kernel_release(names.release);
  environment.set_sandbox(sandbox);
  environment.set_driver_version(device.driver_version());
  return environment;
}

}  // namespace regatta
