#include "server/job/job_request.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "compiler/ops/op.h"
#include "server/query/best_request.h"
#include "server/search/search_strategy.h"

namespace regatta {
namespace {

std::string ListOrNone(const std::vector<std::string>& names) {
  return names.empty() ? "there are none yet" : absl::StrJoin(names, ", ");
}

// Fills in the classes of a task: those named, once each, or every real one.
absl::Status FillClasses(const RequestContext& context, v1::TaskRequest* task) {
  if (task->device_classes().empty()) {
    if (!context.fleet->known()) {
      return absl::UnavailableError(
          "device_classes is empty and no tracker has told of its boards yet; "
          "try again, or name a class");
    }
    const auto classes = context.fleet->RealClasses();
    if (classes.empty()) {
      return absl::FailedPreconditionError(
          "no board is registered; start an agent, or name a device class");
    }
    task->mutable_device_classes()->Assign(classes.begin(), classes.end());
  }
  std::set<std::string> seen;
  std::vector<std::string> classes;
  for (const std::string& name : task->device_classes()) {
    if (!seen.insert(name).second) continue;
    RETURN_IF_ERROR(CheckDeviceClass(name, task->policy().threads(), context));
    classes.push_back(name);
  }
  task->mutable_device_classes()->Assign(classes.begin(), classes.end());
  return absl::OkStatus();
}

absl::Status FillBudget(v1::TaskRequest* task) {
  const double minutes = task->minutes();
  if (!std::isfinite(minutes) || minutes < 0 || minutes > kMaxMinutes) {
    return absl::InvalidArgumentError(
        absl::StrCat("minutes is ", minutes,
                     "; it must be above 0 and at most ", kMaxMinutes));
  }
  if (task->trials() < 0 || task->trials() > kMaxTrials) {
    return absl::InvalidArgumentError(absl::StrCat(
        "trials is ", task->trials(), "; it must be from 1 to ", kMaxTrials));
  }
  if (task->trials() > 0 && minutes > 0) {
    return absl::InvalidArgumentError(
        "trials and minutes are both given; a task is bounded by one of them");
  }
  if (task->trials() == 0 && minutes == 0) task->set_trials(kDefaultTrials);
  return absl::OkStatus();
}

absl::Status FillTask(const RequestContext& context, v1::TaskRequest* task) {
  auto workload = ParseWorkload(task->workload());
  if (!workload.ok()) return Annotate(workload.status(), "workload");
  task->set_workload(workload->text);
  ASSIGN_OR_RETURN(*task->mutable_policy(), NormalisePolicy(task->policy()));
  RETURN_IF_ERROR(FillBudget(task));
  return FillClasses(context, task);
}

absl::Status FillStrategy(v1::SubmitJobRequest* request) {
  if (request->strategy().empty()) {
    request->set_strategy(std::string(SearchStrategies().front().name));
  }
  if (FindSearchStrategy(request->strategy()) != nullptr) {
    return absl::OkStatus();
  }
  std::vector<std::string> names;
  for (const StrategyInfo& info : SearchStrategies()) {
    names.emplace_back(info.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "strategy '", request->strategy(),
      "' does not exist; there are: ", absl::StrJoin(names, ", ")));
}

}  // namespace

absl::Status CheckDeviceClass(const std::string& device_class, int threads,
                              const RequestContext& context) {
  const ClassView* view = context.fleet->Find(device_class);
  if (view != nullptr) {
    if (view->cores > 0 && threads > view->cores) {
      return absl::FailedPreconditionError(
          absl::StrCat("policy.threads is ", threads, ", but a board of class ",
                       device_class, " has ", view->cores, " cores"));
    }
    return absl::OkStatus();
  }
  const auto& logged = context.logged_classes;
  if (std::find(logged.begin(), logged.end(), device_class) != logged.end()) {
    return absl::OkStatus();
  }
  if (!context.fleet->known()) {
    return absl::UnavailableError(absl::StrCat(
        "device class '", device_class,
        "' is not in the tuning log and no tracker has told of its boards yet; "
        "try again"));
  }
  std::set<std::string> all(logged.begin(), logged.end());
  for (const std::string& name : context.fleet->Classes()) all.insert(name);
  return absl::NotFoundError(absl::StrCat(
      "no board ever had device class '", device_class,
      "'; classes that exist: ", ListOrNone({all.begin(), all.end()})));
}

absl::StatusOr<v1::SubmitJobRequest> NormaliseJobRequest(
    const v1::SubmitJobRequest& request, const RequestContext& context) {
  v1::SubmitJobRequest full = request;
  if (full.name().size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("name has ", full.name().size(), " bytes; at most ",
                     kMaxNameBytes, " are kept"));
  }
  if (full.tasks().empty()) {
    return absl::InvalidArgumentError("tasks is empty; a job needs a workload");
  }
  if (full.tasks_size() > kMaxTasks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tasks has ", full.tasks_size(), " entries; at most ", kMaxTasks));
  }
  RETURN_IF_ERROR(FillStrategy(&full));
  if (!full.has_seed()) full.set_seed(context.drawn_seed);
  full.set_has_seed(true);
  std::set<std::tuple<std::string, std::string, int, int>> seen;
  for (int i = 0; i < full.tasks_size(); ++i) {
    v1::TaskRequest* task = full.mutable_tasks(i);
    // A job of one task says the field alone.
    const std::string where =
        full.tasks_size() == 1 ? "" : absl::StrCat("tasks[", i, "]");
    if (absl::Status status = FillTask(context, task); !status.ok()) {
      return where.empty() ? status : Annotate(status, where);
    }
    for (const std::string& name : task->device_classes()) {
      if (!seen.insert({task->workload(), name, task->policy().threads(),
                        task->policy().cache()})
               .second) {
        return absl::InvalidArgumentError(absl::StrCat(
            "tasks[", i, "] repeats an earlier task: ", task->workload(),
            " on ", name));
      }
    }
  }
  if (seen.size() > kMaxTasks) {
    return absl::InvalidArgumentError(
        absl::StrCat("the job has ", seen.size(),
                     " tasks (workload times class); at most ", kMaxTasks));
  }
  return full;
}

absl::StatusOr<std::vector<TaskSpec>> ExpandTasks(
    int64_t job_id, const v1::SubmitJobRequest& request) {
  std::vector<TaskSpec> specs;
  Random seeds(request.seed());
  for (const v1::TaskRequest& task : request.tasks()) {
    ASSIGN_OR_RETURN(Workload workload, ParseWorkload(task.workload()));
    for (const std::string& device_class : task.device_classes()) {
      TaskSpec spec;
      spec.job_id = job_id;
      spec.index = static_cast<int>(specs.size());
      spec.workload = workload;
      spec.device_class = device_class;
      spec.policy = task.policy();
      spec.budget_trials = task.trials();
      spec.budget_ms = std::llround(std::ceil(task.minutes() * 60'000));
      spec.strategy = request.strategy();
      spec.seed = seeds.Next();
      spec.priority = request.priority();
      spec.fresh = request.fresh();
      specs.push_back(std::move(spec));
    }
  }
  return specs;
}

}  // namespace regatta
