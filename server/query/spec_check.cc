#include "server/query/spec_check.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/space/space.h"
#include "compiler/target/target.h"
#include "proto/policy_limits.h"
#include "server/query/best_memo.h"

namespace regatta {
namespace {

absl::Status CheckSchedule(const v1::TrialSpec& spec, const Target& target,
                           BestMemo& memo) {
  const v1::ScheduleText& schedule = spec.schedule();
  // What another version meant is for that version to say; and which schedules
  // there are depends on what the target can do.
  if (schedule.space() != target.kind ||
      schedule.space_version() != kSpaceVersion || target.vector_bits == 0 ||
      target.vector_registers == 0) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const Workload> workload,
                   memo.Parse(spec.workload()));
  ASSIGN_OR_RETURN(
      const std::shared_ptr<const Space> space,
      memo.SpaceOf(*workload, {.target = target, .text = spec.target()},
                   spec.policy().threads()));
  return Annotate(space->Parse(schedule.text()).status(), "its schedule");
}

}  // namespace

std::function<absl::Status(const v1::TrialSpec&)> MakeSpecCheck() {
  return [memo = std::make_shared<BestMemo>()](
             const v1::TrialSpec& spec) -> absl::Status {
    const absl::StatusOr<Target> target = ParseTarget(spec.target());
    if (!target.ok()) return Annotate(target.status(), "its target");
    if (spec.policy().threads() > kMaxThreads) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has ", spec.policy().threads(),
                       " threads; there are at most ", kMaxThreads));
    }
    return CheckSchedule(spec, *target, *memo);
  };
}

}  // namespace regatta
