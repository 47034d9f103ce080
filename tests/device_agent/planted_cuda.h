// CUDA modules written by hand, for trials of "B[i] = A[i] * 2 where i=1000":
// one that is right and others that go wrong in a way of their own.
#ifndef REGATTA_TESTS_DEVICE_AGENT_PLANTED_CUDA_H_
#define REGATTA_TESTS_DEVICE_AGENT_PLANTED_CUDA_H_

#include <optional>
#include <string_view>

#include "compiler/module/module.h"

namespace regatta {

// Absent for a name of which nothing is planted.
std::optional<Module> PlantedCudaModule(std::string_view name,
                                        const std::string& target);

}  // namespace regatta

#endif  // REGATTA_TESTS_DEVICE_AGENT_PLANTED_CUDA_H_
