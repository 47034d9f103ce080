#include "server/job/job_request.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/one_line.h"
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
    auto classes = context.fleet->PresentRealClasses();
    // Better wait for a board than not to start.
    if (classes.empty()) classes = context.fleet->RealClasses();
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

// Of a task or of a whole job.
template <typename Request>
absl::Status CheckBudget(const Request& request) {
  const double minutes = request.minutes();
  if (!std::isfinite(minutes) || minutes < 0 || minutes > kMaxMinutes) {
    return absl::InvalidArgumentError(
        absl::StrCat("minutes is ", minutes,
                     "; it must be above 0 and at most ", kMaxMinutes));
  }
  if (request.trials() < 0 || request.trials() > kMaxTrials) {
    return absl::InvalidArgumentError(absl::StrCat(
        "trials is ", request.trials(), "; it must be from 1 to ", kMaxTrials));
  }
  if (request.trials() > 0 && minutes > 0) {
    return absl::InvalidArgumentError(
        "trials and minutes are both given; a task is bounded by one of them");
  }
  const double gain = request.until_gain_percent();
  if (!std::isfinite(gain) || gain < 0 || gain > kMaxGainPercent) {
    return absl::InvalidArgumentError(
        absl::StrCat("until_gain_percent is ", gain,
                     "; it must be above 0 and at most ", kMaxGainPercent));
  }
  return absl::OkStatus();
}

constexpr size_t kMaxUserBytes = 256;

template <typename Request>
absl::Status FillWeight(Request* request) {
  const double weight = request->weight();
  if (weight == 0) {
    request->set_weight(1);
  } else if (!(weight >= kMinWeight && weight <= kMaxWeight)) {
    return absl::InvalidArgumentError(
        absl::StrCat("weight is ", weight, "; it must be from ", kMinWeight,
                     " to ", kMaxWeight));
  }
  return absl::OkStatus();
}

absl::Status CheckUrgency(const v1::SubmitJobRequest& request) {
  if (request.user().size() > kMaxUserBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("user has ", request.user().size(), " bytes; at most ",
                     kMaxUserBytes, " are allowed"));
  }
  const double minutes = request.deadline_minutes();
  if (std::isfinite(minutes) && minutes >= 0 && minutes <= kMaxMinutes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("deadline_minutes is ", minutes,
                   "; it must be above 0 and at most ", kMaxMinutes));
}

bool HasBound(const v1::TaskRequest& task) {
  return task.trials() > 0 || task.minutes() > 0;
}

// `total` trials over the tasks that have no bound of their own, by weight: at
// least one each, the largest remainders first, so that the sum is `total`.
absl::Status DivideTrials(int64_t total, v1::SubmitJobRequest* request) {
  std::vector<v1::TaskRequest*> open;
  double weights = 0;
  for (v1::TaskRequest& task : *request->mutable_tasks()) {
    if (HasBound(task)) continue;
    open.push_back(&task);
    weights += task.weight();
  }
  if (open.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "trials is ", total,
        " for all tasks together, but every task has a bound of its own; "
        "leave out one or the other"));
  }
  if (total < static_cast<int64_t>(open.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("trials is ", total, " for ", open.size(),
                     " tasks together; each needs one at least"));
  }
  // One each first; the rest by weight.
  const int64_t rest = total - static_cast<int64_t>(open.size());
  std::vector<std::pair<double, size_t>> remainders;
  int64_t given = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    const double share = std::max(
        0.0, static_cast<double>(total) * open[i]->weight() / weights - 1);
    const auto whole = static_cast<int64_t>(std::min<double>(share, rest));
    open[i]->set_trials(1 + whole);
    given += whole;
    remainders.emplace_back(static_cast<double>(whole) - share, i);
  }
  std::sort(remainders.begin(), remainders.end());
  for (size_t i = 0; given < rest; i = (i + 1) % open.size(), ++given) {
    v1::TaskRequest* task = open[remainders[i].second];
    task->set_trials(task->trials() + 1);
  }
  // Where tasks were raised to one, the largest give.
  for (; given > rest; --given) {
    v1::TaskRequest* largest = *std::max_element(
        open.begin(), open.end(),
        [](auto* a, auto* b) { return a->trials() < b->trials(); });
    largest->set_trials(largest->trials() - 1);
  }
  return absl::OkStatus();
}

// Gives the job-wide budget to the tasks that have none, and its minutes to
// all. REQUIRES: all weights and budgets are checked.
absl::Status DivideBudget(v1::SubmitJobRequest* request) {
  if (request->trials() > 0) {
    RETURN_IF_ERROR(DivideTrials(request->trials(), request));
  }
  for (v1::TaskRequest& task : *request->mutable_tasks()) {
    if (task.until_gain_percent() == 0) {
      task.set_until_gain_percent(request->until_gain_percent());
    }
    // The job's minutes bound a task with a bound of its own, too.
    if (request->minutes() > 0 &&
        (task.minutes() == 0 || task.minutes() > request->minutes())) {
      task.set_minutes(request->minutes());
    } else if (!HasBound(task)) {
      task.set_trials(kDefaultTrials);
    }
  }
  request->clear_trials();
  request->clear_minutes();
  request->clear_until_gain_percent();
  return absl::OkStatus();
}

std::string Gib(double bytes) {
  return absl::StrFormat("%.1f GiB", bytes / (int64_t{1} << 30));
}

// What every schedule of it takes at least: inputs, and outputs beside the
// right ones.
absl::Status CheckMemory(const Workload& workload, const v1::TaskRequest& task,
                         const FleetView& fleet) {
  double outputs = 0;
  for (const int output : workload.TensorsWithRole(TensorRole::kOutput)) {
    const TensorDecl& tensor = workload.tensors[output];
    outputs +=
        static_cast<double>(tensor.Elements()) * DTypeBytes(tensor.dtype);
  }
  const double needed = workload.Bytes() + outputs;
  for (const std::string& name : task.device_classes()) {
    const ClassView* view = fleet.Find(name);
    if (view == nullptr || view->memory_bytes <= 0) continue;
    if (needed <= static_cast<double>(view->memory_bytes)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "workload: its tensors take ", Gib(needed), " (",
        Gib(workload.Bytes() - outputs), " of inputs, ", Gib(outputs),
        " of outputs, twice to compare them), but the largest board of class ",
        name, " has ", Gib(static_cast<double>(view->memory_bytes)),
        " of memory"));
  }
  return absl::OkStatus();
}

// Returns the key of its workload, which may be written in several ways.
absl::StatusOr<std::string> FillTask(const RequestContext& context,
                                     v1::TaskRequest* task) {
  auto workload = ParseWorkload(task->workload());
  if (!workload.ok()) return Annotate(workload.status(), "workload");
  task->set_workload(workload->text);
  ASSIGN_OR_RETURN(*task->mutable_policy(), NormalisePolicy(task->policy()));
  RETURN_IF_ERROR(CheckBudget(*task));
  RETURN_IF_ERROR(FillWeight(task));
  RETURN_IF_ERROR(FillClasses(context, task));
  RETURN_IF_ERROR(CheckMemory(*workload, *task, *context.fleet));
  return workload->key;
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
        "the tuning log has no record of a board of device class '",
        device_class,
        "' and no tracker has told of its boards yet; try again"));
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
  if (OneLine(full.name()) != full.name()) {
    return absl::InvalidArgumentError(
        absl::StrCat("name must be one line without control characters, not \"",
                     OneLine(full.name()), "\""));
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
  RETURN_IF_ERROR(CheckBudget(full));
  RETURN_IF_ERROR(FillWeight(&full));
  RETURN_IF_ERROR(CheckUrgency(full));
  std::set<std::tuple<std::string, std::string, int, int>> seen;
  for (int i = 0; i < full.tasks_size(); ++i) {
    v1::TaskRequest* task = full.mutable_tasks(i);
    // A job of one task says the field alone.
    const std::string where =
        full.tasks_size() == 1 ? "" : absl::StrCat("tasks[", i, "]");
    const absl::StatusOr<std::string> key = FillTask(context, task);
    if (!key.ok()) {
      return where.empty() ? key.status() : Annotate(key.status(), where);
    }
    for (const std::string& name : task->device_classes()) {
      if (!seen.insert({*key, name, task->policy().threads(),
                        task->policy().cache()})
               .second) {
        return absl::InvalidArgumentError(absl::StrCat(
            "tasks[", i, "] repeats an earlier task: ", task->workload(),
            " on ", name));
      }
    }
  }
  RETURN_IF_ERROR(DivideBudget(&full));
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
      if (task.until_gain_percent() > 0) {
        spec.until_gain = 1 + task.until_gain_percent() / 100;
      }
      // A job of an earlier release was stored without.
      spec.weight = task.weight() > 0 ? task.weight() : 1;
      spec.job_weight = request.weight() > 0 ? request.weight() : 1;
      spec.strategy = request.strategy();
      spec.seed = seeds.Next();
      spec.priority = request.priority();
      spec.user = request.user();
      spec.fresh = request.fresh();
      specs.push_back(std::move(spec));
    }
  }
  return specs;
}

}  // namespace regatta
