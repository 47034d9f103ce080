#include "server/job/canaries.h"

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "compiler/ops/op.h"
#include "compiler/space/space.h"

namespace regatta {
namespace {

// Small enough for any board, large enough that a call is no mere overhead: 33
// million operations; 24 MiB that must move, more than most caches hold.
struct Kernel {
  const char* name;
  const char* workload;
};
constexpr Kernel kKernels[] = {
    {"compute", "matmul(m=256,n=256,k=256)"},
    {"bandwidth", "C[i] = A[i] + B[i] where i=2097152, dtype=f32"},
};
constexpr uint64_t kInputSeed = 1;

absl::StatusOr<v1::Canary> Make(const Kernel& kernel,
                                const std::string& device_class,
                                const std::string& target_text,
                                const std::string& compiler_version) {
  ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(kernel.workload));
  SpaceContext context;
  context.workload = workload;
  ASSIGN_OR_RETURN(context.target, ParseTarget(target_text));
  context.threads = 1;
  ASSIGN_OR_RETURN(const Space space, Space::Create(std::move(context)));
  v1::Canary canary;
  canary.set_name(kernel.name);
  v1::TrialSpec& trial = *canary.mutable_trial();
  trial.set_workload(workload.text);
  trial.set_workload_key(workload.key);
  trial.set_device_class(device_class);
  trial.set_target(target_text);
  trial.mutable_policy()->set_threads(1);
  trial.mutable_policy()->set_cache(v1::CACHE_STATE_WARM);
  trial.mutable_schedule()->set_space(std::string(space.name()));
  trial.mutable_schedule()->set_space_version(kSpaceVersion);
  trial.mutable_schedule()->set_text(space.Print(space.Default()));
  trial.set_input_seed(kInputSeed);
  trial.set_compiler_version(compiler_version);
  return canary;
}

}  // namespace

const std::vector<v1::Canary>& CanaryMaker::Of(const std::string& device_class,
                                               const std::string& target) {
  if (made_.size() >= kMaxMade) made_.clear();  // made again when asked for
  auto [made, is_new] = made_.try_emplace({device_class, target});
  if (!is_new) return made->second;
  const auto all = [&]() -> absl::StatusOr<std::vector<v1::Canary>> {
    ASSIGN_OR_RETURN(const Target parsed, ParseTarget(target));
    ASSIGN_OR_RETURN(const std::string version, compiler_version_(parsed));
    std::vector<v1::Canary> canaries;
    for (const Kernel& kernel : kKernels) {
      ASSIGN_OR_RETURN(canaries.emplace_back(),
                       Make(kernel, device_class, target, version));
    }
    return canaries;
  }();
  if (all.ok()) {
    made->second = *all;
  } else {
    LOG(kWarning) << "no canaries for class " << device_class << ": "
                  << all.status().message();
  }
  return made->second;
}

std::vector<v1::Canaries> CanaryMaker::MakeNew(const FleetView& fleet) {
  std::vector<v1::Canaries> all;
  for (const std::string& device_class : fleet.RealClasses()) {
    bool news = false;
    std::vector<std::string> targets;
    for (const std::string& target :
         fleet.Find(device_class)->approved_targets) {
      if (targets.size() == kMaxTargets) break;
      targets.push_back(target);
      news |= offered_.insert({device_class, target}).second;
    }
    if (!news) continue;
    v1::Canaries canaries;
    for (const std::string& target : targets) {
      for (const v1::Canary& canary : Of(device_class, target)) {
        *canaries.add_canaries() = canary;
      }
    }
    if (canaries.canaries_size() > 0) all.push_back(std::move(canaries));
  }
  return all;
}

}  // namespace regatta
