// Where a build worker's modules come from. The compiler, but for tests, which
// wrap it to deliver planted code for schedules of their own.
//
// Not thread-safe: a build worker serves one request at a time.
#ifndef REGATTA_DEVICE_AGENT_BUILD_MODULE_SOURCE_H_
#define REGATTA_DEVICE_AGENT_BUILD_MODULE_SOURCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/module.h"
#include "regatta/v1/build.pb.h"

namespace regatta {

struct SourcedModule {
  Module module;
  double flops = 0;              // per call
  int64_t reduction_length = 1;  // longest sum behind one output element
  bool all_f32 = false;
};

struct SourcedReference {
  SourcedModule code;
  std::vector<v1::SampledOutput> outputs;  // in the module's order
};

class ModuleSource {
 public:
  virtual ~ModuleSource() = default;

  virtual absl::StatusOr<v1::Description> Describe(
      const v1::DescribeRequest& request) = 0;
  virtual absl::StatusOr<v1::BuilderReach> Reach() = 0;
  // FailedPrecondition: a constraint refuses the schedule; the message begins
  // with its name. ResourceExhausted: this board lacks something. Any other
  // error: the candidate cannot be compiled.
  virtual absl::StatusOr<SourcedModule> Build(
      const v1::ModuleRequest& request) = 0;
  virtual absl::StatusOr<SourcedReference> BuildReference(
      const v1::ReferenceRequest& request) = 0;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_BUILD_MODULE_SOURCE_H_
