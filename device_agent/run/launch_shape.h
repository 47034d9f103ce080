// How a kernel is launched, looked at before anything is narrowed to what a
// driver takes.
//
// Pure; thread-safe.
#ifndef REGATTA_DEVICE_AGENT_RUN_LAUNCH_SHAPE_H_
#define REGATTA_DEVICE_AGENT_RUN_LAUNCH_SHAPE_H_

#include <cstdint>

#include "compiler/module/module.h"
#include "device_agent/run/module_runtime.h"

namespace regatta {

struct LaunchShape {
  static constexpr uint32_t kMaxDimensions = 3;

  uint32_t dimensions = 1;
  uint32_t groups[kMaxDimensions] = {1, 1, 1};
  uint32_t threads[kMaxDimensions] = {1, 1, 1};  // of one group
  int64_t group_threads = 1;
  uint32_t shared_bytes = 0;
};

// compile_error for what no module may ask: none or more than three dimensions,
// other numbers of them for groups and threads, an extent outside 1 to 2^31 -
// 1, a negative size. refused for more threads in a group, shared memory or
// threads in a dimension than any device counts.
MaybeFailure ReadShape(const ModuleKernel& kernel, LaunchShape* shape);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_LAUNCH_SHAPE_H_
