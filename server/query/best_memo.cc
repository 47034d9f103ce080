#include "server/query/best_memo.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "compiler/ops/op.h"

namespace regatta {
namespace {

// The text as well as the key: a space's errors name the text.
std::string SpaceKey(const Workload& workload, const CompletedTarget& target,
                     int threads) {
  return absl::StrCat(threads, " ", target.text, " ", workload.text);
}

// Line breaks, which none of these texts has, keep them apart.
std::string TakenKey(const v1::ScheduleText& schedule,
                     std::string_view workload, const CompletedTarget& target,
                     int threads) {
  return absl::StrCat(threads, "\n", target.text, "\n", target.compiler_version,
                      "\n", ToAbsl(workload), "\n", schedule.space(), " ",
                      schedule.space_version(), "\n", schedule.text());
}

}  // namespace

std::function<absl::StatusOr<CompletedTarget>(const Target&)> MakeTargetWith(
    std::function<absl::StatusOr<Target>(const Target&)> complete,
    std::function<absl::StatusOr<std::string>(const Target&)>
        compiler_version) {
  return [=](const Target& target) -> absl::StatusOr<CompletedTarget> {
    CompletedTarget made;
    ASSIGN_OR_RETURN(made.target, complete(target));
    made.text = made.target.ToString();
    ASSIGN_OR_RETURN(made.compiler_version, compiler_version(made.target));
    return made;
  };
}

absl::StatusOr<std::shared_ptr<const Workload>> BestMemo::Parse(
    std::string_view text) {
  const std::string key(text);
  if (auto known = workloads_.Find(key)) return known;
  ASSIGN_OR_RETURN(Workload workload, ParseWorkload(text));
  return workloads_.Keep(key, std::move(workload));
}

absl::StatusOr<std::shared_ptr<const CompletedTarget>> BestMemo::Complete(
    const std::string& text, const MakeTarget& make) {
  if (auto known = targets_.Find(text)) return known;
  ASSIGN_OR_RETURN(const Target target, ParseTarget(text));
  ASSIGN_OR_RETURN(CompletedTarget completed, make(target));
  return targets_.Keep(text, std::move(completed));
}

absl::StatusOr<std::shared_ptr<const Space>> BestMemo::SpaceOf(
    const Workload& workload, const CompletedTarget& target, int threads) {
  const std::string key = SpaceKey(workload, target, threads);
  if (auto known = spaces_.Find(key)) return known;
  SpaceContext context;
  context.workload = workload;
  context.target = target.target;
  context.threads = threads;
  ASSIGN_OR_RETURN(Space space, Space::Create(std::move(context)));
  return spaces_.Keep(key, std::move(space));
}

absl::StatusOr<std::string> BestMemo::DefaultSchedule(
    const Workload& workload, const CompletedTarget& target, int threads) {
  const std::string key = SpaceKey(workload, target, threads);
  if (auto known = defaults_.Find(key)) return *known;
  ASSIGN_OR_RETURN(const auto space, SpaceOf(workload, target, threads));
  return *defaults_.Keep(key, space->Print(space->Default()));
}

bool BestMemo::IsTaken(const v1::ScheduleText& schedule,
                       std::string_view workload, const CompletedTarget& target,
                       int threads) const {
  return taken_.Find(TakenKey(schedule, workload, target, threads)) != nullptr;
}

void BestMemo::NoteTaken(const v1::ScheduleText& schedule,
                         std::string_view workload,
                         const CompletedTarget& target, int threads) {
  taken_.Keep(TakenKey(schedule, workload, target, threads), std::monostate());
}

}  // namespace regatta
