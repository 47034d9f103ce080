#include "device_agent/build/compiler_module_source.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/compile.h"
#include "compiler/interp/interpreter.h"
#include "compiler/ops/op.h"
#include "device_agent/build/device_target.h"
#include "device_agent/build/processor_target.h"
#include "device_agent/build/workload_facts.h"
#include "device_agent/verify/input_data.h"

namespace regatta {
namespace {

SourcedModule WithFacts(Module module, const Workload& workload) {
  SourcedModule sourced;
  sourced.module = std::move(module);
  sourced.flops = workload.Flops();
  sourced.reduction_length = ReductionLength(workload);
  sourced.all_f32 = AllF32(workload);
  return sourced;
}

// Complete.
absl::StatusOr<Target> DescribedTarget(const v1::DescribeRequest& request) {
  if (!request.has_device()) return ProcessorTarget(request);
  ASSIGN_OR_RETURN(const Target target, TargetOfDevice(request.device()));
  return CompleteTarget(target);
}

// Offsets of elements to look at: all of a small tensor, else distinct ones
// drawn evenly, in random order so that any prefix is a fair sample.
std::vector<int64_t> SampleOffsets(int64_t elements, int samples,
                                   Random& random) {
  std::vector<int64_t> offsets;
  if (elements <= samples) {
    for (int64_t e = 0; e < elements; ++e) offsets.push_back(e);
    return offsets;
  }
  std::set<int64_t> seen;
  while (static_cast<int>(offsets.size()) < samples) {
    const auto offset =
        static_cast<int64_t>(random.Below(static_cast<uint64_t>(elements)));
    if (seen.insert(offset).second) offsets.push_back(offset);
  }
  return offsets;
}

}  // namespace

absl::StatusOr<v1::BuilderReach> CompilerModuleSource::Reach() {
  v1::BuilderReach reach;
  for (const CodeGenerator* generator : CodeGenerators()) {
    for (const std::string& tool : generator->ToolVersions()) {
      v1::KindReach& kind = *reach.add_kinds();
      kind.set_kind(std::string(generator->target_kind()));
      kind.set_compiler_version(CompilerVersionOf(tool));
      kind.set_space_version(kSpaceVersion);
      for (std::string& architecture : generator->Architectures()) {
        kind.add_architectures(std::move(architecture));
      }
    }
  }
  return reach;
}

absl::StatusOr<v1::Description> CompilerModuleSource::Describe(
    const v1::DescribeRequest& request) {
  ASSIGN_OR_RETURN(const Target target, DescribedTarget(request));
  if (request.has_device()) RETURN_IF_ERROR(CheckTool(target));
  v1::Description description;
  description.set_target(target.ToString());
  description.set_compiler_version(CompilerVersion(target));
  description.set_space(target.kind);
  description.set_space_version(kSpaceVersion);
  if (!request.has_device()) {
    description.set_device_class(CpuDeviceClass(target, request.cores()));
  }
  return description;
}

absl::StatusOr<const CompilerModuleSource::Subject*>
CompilerModuleSource::SubjectOf(const v1::ModuleRequest& request) {
  const std::string key = absl::StrCat(request.threads(), "|", request.target(),
                                       "|", request.workload());
  const auto kept =
      std::find_if(subjects_.begin(), subjects_.end(),
                   [&](const Subject& subject) { return subject.key == key; });
  if (kept != subjects_.end()) {
    subjects_.splice(subjects_.begin(), subjects_, kept);
    return &subjects_.front();
  }
  ASSIGN_OR_RETURN(Workload workload, ParseWorkload(request.workload()));
  ASSIGN_OR_RETURN(Target target, ParseTarget(request.target()));
  ASSIGN_OR_RETURN(target, CompleteTarget(target));
  ASSIGN_OR_RETURN(Space space, CreateSpace(workload, target,
                                            std::max(1, request.threads())));
  subjects_.push_front({key, std::move(workload), std::move(space)});
  if (subjects_.size() > kSubjects) subjects_.pop_back();
  return &subjects_.front();
}

absl::StatusOr<SourcedModule> CompilerModuleSource::Build(
    const v1::ModuleRequest& request) {
  ASSIGN_OR_RETURN(const Subject* subject, SubjectOf(request));
  const Space& space = subject->space;
  const v1::ScheduleText& schedule = request.schedule();
  if (schedule.space() != space.name() ||
      schedule.space_version() != kSpaceVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schedule is of space ", schedule.space(), " version ",
                     schedule.space_version(), "; this board builds ",
                     std::string(space.name()), " version ", kSpaceVersion));
  }
  const std::string version = CompilerVersion(space.context().target);
  if (!request.compiler_version().empty() &&
      request.compiler_version() != version) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this build worker is of compiler ", version,
                     ", the trial needs ", request.compiler_version()));
  }
  ASSIGN_OR_RETURN(Module module,
                   Compile(space, schedule.text(), kTrialModuleName));
  return WithFacts(std::move(module), subject->workload);
}

absl::StatusOr<SourcedReference> CompilerModuleSource::BuildReference(
    const v1::ReferenceRequest& request) {
  ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(request.workload()));
  ASSIGN_OR_RETURN(Target target, ParseTarget(request.target()));
  ASSIGN_OR_RETURN(target, CompleteTarget(target));
  ASSIGN_OR_RETURN(Module module,
                   CompileReference(workload, target, kTrialModuleName));
  SourcedReference reference;
  reference.code = WithFacts(std::move(module), workload);

  std::vector<TensorValues> inputs;
  for (int tensor : workload.TensorsWithRole(TensorRole::kInput)) {
    const TensorDecl& declared = workload.tensors[tensor];
    inputs.push_back(InputValues(request.input_seed(),
                                 static_cast<int>(inputs.size()),
                                 declared.Elements(), declared.dtype));
  }
  PointInterpreter interpreter(workload, inputs);
  Random random(request.input_seed());
  const SteadyTime started = clock_.Steady();
  for (int tensor : workload.TensorsWithRole(TensorRole::kOutput)) {
    v1::SampledOutput& sampled = reference.outputs.emplace_back();
    for (int64_t offset : SampleOffsets(workload.tensors[tensor].Elements(),
                                        request.samples(), random)) {
      if (sampled.offsets_size() >= kMinSamples &&
          clock_.Steady() - started > kSamplingTime) {
        break;
      }
      sampled.add_offsets(offset);
      sampled.add_values(interpreter.Evaluate(tensor, offset));
    }
  }
  return reference;
}

}  // namespace regatta
