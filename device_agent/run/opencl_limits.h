// What an OpenCL device can do that takes more than one question.
#ifndef REGATTA_DEVICE_AGENT_RUN_OPENCL_LIMITS_H_
#define REGATTA_DEVICE_AGENT_RUN_OPENCL_LIMITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "device_agent/run/opencl_api.h"

namespace regatta::opencl {

// Pixels of the largest two-dimensional image; 0 and 0 where kernels cannot
// both read and write images of four floats, or of four halves.
struct ImageLimits {
  int32_t width = 0, height = 0;
};
ImageLimits ImageLimitsOf(const Api& api, Device device);

// Work-items that run in step: what the vendor's own question says, else what
// a small kernel is told on devices that have sub-groups; 0 where nobody says.
int32_t SubgroupSize(const Api& api, Device device,
                     const std::vector<std::string>& extensions);

}  // namespace regatta::opencl

#endif  // REGATTA_DEVICE_AGENT_RUN_OPENCL_LIMITS_H_
