// From what a machine is told of its processors to the target of code for them.
// Pure functions.
#ifndef REGATTA_DEVICE_AGENT_BUILD_PROCESSOR_TARGET_H_
#define REGATTA_DEVICE_AGENT_BUILD_PROCESSOR_TARGET_H_

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "regatta/v1/build.pb.h"

namespace regatta {

// Complete: the request's target, else that of its processor, else this
// machine's own. InvalidArgument when it is no target of processors.
absl::StatusOr<Target> ProcessorTarget(const v1::DescribeRequest& request);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_BUILD_PROCESSOR_TARGET_H_
