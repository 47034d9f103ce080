// Modules written by hand for devices, for trials of
// "B[i] = A[i] * 2 where i=1000": one that is right and others that go wrong in
// a way of their own.
#ifndef REGATTA_TESTS_DEVICE_AGENT_PLANTED_DEVICE_H_
#define REGATTA_TESTS_DEVICE_AGENT_PLANTED_DEVICE_H_

#include <optional>
#include <string>
#include <string_view>

#include "compiler/module/module.h"

namespace regatta {

// For a target of OpenCL or CUDA. Absent for a name of which nothing is planted
// for such targets.
std::optional<Module> PlantedDeviceModule(std::string_view name,
                                          const std::string& target);

}  // namespace regatta

#endif  // REGATTA_TESTS_DEVICE_AGENT_PLANTED_DEVICE_H_
