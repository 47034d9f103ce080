// The compiled kernels of planted/, inside this program: a build worker may not
// be able to read the folder that they were built in.
#ifndef REGATTA_TESTS_DEVICE_AGENT_PLANTED_CODE_H_
#define REGATTA_TESTS_DEVICE_AGENT_PLANTED_CODE_H_

#include <optional>
#include <string>
#include <string_view>

namespace regatta {

// The shared object of planted/NAME.c; absent when there is none.
std::optional<std::string> PlantedCode(std::string_view name);

}  // namespace regatta

#endif  // REGATTA_TESTS_DEVICE_AGENT_PLANTED_CODE_H_
