// Modules from the compiler.
#ifndef REGATTA_DEVICE_AGENT_BUILD_COMPILER_MODULE_SOURCE_H_
#define REGATTA_DEVICE_AGENT_BUILD_COMPILER_MODULE_SOURCE_H_

#include <list>
#include <memory>
#include <string>

#include "base/clock.h"
#include "compiler/space/space.h"
#include "device_agent/build/module_source.h"

namespace regatta {

class CompilerModuleSource : public ModuleSource {
 public:
  // Kept, since a job asks about the same one over and over.
  static constexpr size_t kSubjects = 16;
  // Sampling a long chain of stages with the interpreter may take long; it
  // stops after this, but not before kMinSamples.
  static constexpr absl::Duration kSamplingTime = absl::Seconds(2);
  static constexpr int kMinSamples = 16;

  // REQUIRES: `clock` outlives it.
  explicit CompilerModuleSource(const Clock& clock) : clock_(clock) {}

  absl::StatusOr<v1::Description> Describe(
      const v1::DescribeRequest& request) override;
  absl::StatusOr<v1::BuilderReach> Reach() override;
  absl::StatusOr<SourcedModule> Build(
      const v1::ModuleRequest& request) override;
  absl::StatusOr<SourcedReference> BuildReference(
      const v1::ReferenceRequest& request) override;

  struct Subject {
    std::string key;
    Workload workload;  // as asked for
    Space space;
  };
  // What `request` is about; the pointer holds until the next call.
  absl::StatusOr<const Subject*> SubjectOf(const v1::ModuleRequest& request);

 private:
  const Clock& clock_;
  std::list<Subject> subjects_;  // most recently used first
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_BUILD_COMPILER_MODULE_SOURCE_H_
