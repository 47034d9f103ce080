// What jobs do next: news of the fleet, tasks' progress, saving and sending.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "proto/outcome_names.h"
#include "server/job/job_manager.h"
#include "server/query/workload_info.h"

namespace regatta {
namespace {

// Work kept out beyond what the boards hold, so that none waits for the server.
constexpr int kMargin = 2;
// A wait is shown once a task has been without a result for this long: boards
// that are busy with this very job make its queued work wait all the time.
constexpr absl::Duration kWaitShown = absl::Seconds(5);
// With more, each is shown less often.
constexpr int64_t kJobsShownAtOnce = 8;

// The job of a work id "JOB/TASK/ORDINAL"; 0 for another form.
int64_t JobOf(const std::string& work_id) {
  int64_t job_id = 0;
  return absl::SimpleAtoi(work_id.substr(0, work_id.find('/')), &job_id)
             ? job_id
             : 0;
}

}  // namespace

// A task's way to the log and the fleet.
class JobManager::Port : public TaskPort {
 public:
  Port(JobManager* manager, int64_t job_id)
      : manager_(manager), job_id_(job_id) {}

  absl::StatusOr<int64_t> ReserveOrdinals(int task, int64_t count) override {
    return manager_->options_.log->ReserveOrdinals(job_id_, task, count);
  }
  absl::StatusOr<std::optional<BestKnown>> Best(const BestKey& key) override {
    return manager_->options_.log->Best(key);
  }
  absl::Status Publish(const Publication& publication) override {
    return manager_->options_.log->Publish(publication, manager_->UnixMs());
  }
  std::optional<double> NoiseFloor(const std::string& device_id) override {
    return manager_->fleet_in_use_->NoiseFloor(device_id);
  }

 private:
  JobManager* manager_;
  int64_t job_id_;
};

bool JobManager::Step() {
  std::lock_guard step(step_mutex_);
  Events events;
  {
    std::lock_guard lock(events_mutex_);
    if (closed_) return false;
    events = std::exchange(events_, Events());
  }
  const bool worked = !events.empty();
  known_trouble_ = std::exchange(trouble_, "");
  const std::string trouble = known_trouble_;
  TakeFleetNews(events);
  CommitResults(std::move(events.results));
  AdvanceAll();
  if (trouble_ != trouble) {
    if (trouble_.empty()) LOG(kInfo) << "the tuning log can be written again";
    TouchActiveJobs();
  }
  PublishSnapshots();
  return worked;
}

void JobManager::TakeFleetNews(Events& events) {
  if (events.fleet) fleet_in_use_ = events.fleet;
  if (events.wait_report) {
    waits_.clear();
    for (const v1::JobWait& wait : events.wait_report->jobs()) {
      waits_[{wait.job_id(), wait.device_class()}] = wait.reason().text();
    }
  }
  if (events.detached) attached_ = false;
  if (events.attached) {
    canaries_.ForgetOffered();
    TakeAttachment(*events.attached);
  }
  if (attached_ && (events.fleet || events.attached)) {
    for (const v1::Canaries& canaries : canaries_.MakeNew(*fleet_in_use_)) {
      options_.dispatcher->OfferCanaries(canaries);
    }
  }
  if (events.fleet || events.wait_report || events.attached ||
      events.detached) {
    TouchActiveJobs();
  }
}

void JobManager::TouchActiveJobs() {
  for (auto& [id, slot] : jobs_) {
    if (slot.job.active()) slot.changed = true;
  }
}

void JobManager::TakeAttachment(const v1::Attached& attached) {
  attached_ = true;
  std::vector<v1::Work> works;
  std::set<std::string> wanted;
  for (auto& [id, slot] : jobs_) {
    std::set<std::string> unsent;
    for (const v1::Work& work : slot.unsent) unsent.insert(work.work_id());
    for (TaskRunner& task : slot.job.tasks()) {
      for (v1::Work& work : task.InFlight()) {
        wanted.insert(work.work_id());
        if (unsent.count(work.work_id()) == 0) works.push_back(std::move(work));
      }
    }
  }
  // By job, since a cancellation names one.
  std::map<int64_t, v1::CancelWork> cancels;
  for (const std::string& held : attached.held_work_ids()) {
    if (wanted.count(held) > 0) continue;
    v1::CancelWork& cancel = cancels[JobOf(held)];
    cancel.set_job_id(JobOf(held));
    cancel.add_work_ids(held);
  }
  for (const auto& [id, cancel] : cancels) {
    options_.dispatcher->CancelWork(cancel);
  }
  if (!works.empty()) options_.dispatcher->Submit(std::move(works));
}

absl::Status JobManager::PrepareTask(TaskRunner& task) {
  if (task.resolved()) return absl::OkStatus();
  const TaskSpec& spec = task.spec();
  const auto known = FindClass(spec.device_class);
  if (!known) return absl::OkStatus();  // no board of the class was seen yet
  auto target = ParseTarget(known->target);
  if (!target.ok()) {
    task.Settle(v1::JOB_STATE_FAILED,
                absl::StrCat("the target of class ", spec.device_class, ": ",
                             target.status().message()));
    return absl::OkStatus();
  }
  const auto version = options_.compiler_version(*target);
  if (!version.ok()) {
    task.Settle(v1::JOB_STATE_FAILED, std::string(version.status().message()));
    return absl::OkStatus();
  }
  const auto usable = [&](const std::string& other) {
    const auto info = FindClass(other);
    return known->simulated || !info || !info->simulated;
  };
  RETURN_IF_ERROR(options_.log->PutWorkload(DescribeWorkload(spec.workload)));
  auto history =
      LoadTaskHistory(*options_.log, spec, known->target, *version, usable);
  if (absl::IsDataLoss(history.status())) {
    // Trying again would not help, and the other tasks are not to suffer.
    task.Settle(v1::JOB_STATE_FAILED,
                absl::StrCat("its records in the tuning log are damaged: ",
                             history.status().message()));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(history.status());
  const absl::Status resolved =
      task.Resolve(known->target, *version, known->simulated);
  if (!resolved.ok()) {
    task.Settle(v1::JOB_STATE_FAILED, std::string(resolved.message()));
    return absl::OkStatus();
  }
  task.Learn(*std::move(history));
  return absl::OkStatus();
}

int JobManager::Wanted(const TaskRunner& task, double class_weight) const {
  const ClassView* view = fleet_in_use_->Find(task.spec().device_class);
  int credit = 0;
  if (view != nullptr) {
    const auto found = view->credit.find(task.compiler_version());
    if (found != view->credit.end()) credit = found->second;
  }
  // With no board there, one piece of work waits in the tracker's queue, which
  // then says why.
  if (credit == 0) return 1;
  // No more than its share is proposed ahead of results: the boards are kept
  // busy by the job's tasks together.
  const double share = task.spec().weight / class_weight;
  return static_cast<int>(std::ceil(credit * std::min(1.0, share))) + kMargin;
}

void JobManager::AdvanceJob(JobSlot& slot) {
  Port port(this, slot.job.id());
  const SteadyTime now = options_.clock->Steady();
  std::map<std::string, double> weights;  // of active tasks, by class
  for (const TaskRunner& task : slot.job.tasks()) {
    if (task.active()) weights[task.spec().device_class] += task.spec().weight;
  }
  for (TaskRunner& task : slot.job.tasks()) {
    if (!task.active()) continue;
    if (absl::Status status = PrepareTask(task); !status.ok()) {
      NoteTrouble(status);
      continue;
    }
    TaskPlan plan;
    if (task.resolved() && task.active()) {
      NoteTrouble(
          task.Advance(now, Wanted(task, weights.at(task.spec().device_class)),
                       port, &plan));
    }
    if (!task.active()) plan.save = slot.exact = true;
    for (v1::Work& work : plan.submit) slot.unsent.push_back(std::move(work));
    for (std::string& id : plan.cancel) {
      slot.uncancelled.push_back(std::move(id));
    }
    slot.dirty = slot.dirty || plan.save;
  }
}

void JobManager::AdvanceAll() {
  int64_t active = 0;
  std::vector<JobSlot*> dirty;
  for (auto& [id, slot] : jobs_) {
    if (slot.job.active()) AdvanceJob(slot);
    if (slot.dirty) dirty.push_back(&slot);
    active += slot.job.active() ? 1 : 0;
  }
  active_jobs_ = active;
  FlushJobs(dirty);
  ForgetEnded();
  has_active_job_ = active > 0 || !unstored_.empty() || !trouble_.empty();
}

void JobManager::FlushJobs(const std::vector<JobSlot*>& slots) {
  std::vector<TuningLog::JobProgress> progress;
  std::vector<JobSlot*> saved;
  for (JobSlot* slot : slots) {
    if (!slot->dirty) continue;
    progress.push_back(ProgressOf(*slot));
    saved.push_back(slot);
  }
  if (saved.empty()) return;
  if (absl::Status status = options_.log->SaveJobs(progress); !status.ok()) {
    NoteTrouble(status);
    return;
  }
  for (size_t i = 0; i < saved.size(); ++i) {
    saved[i]->dirty = false;
    saved[i]->job.WorkSaved();
    saved[i]->ended = IsEnded(progress[i].job.state());
    SendSaved(*saved[i]);
  }
}

absl::Duration JobManager::StatusAge() const {
  return std::clamp<absl::Duration>(
      (active_jobs_ - kJobsShownAtOnce) * absl::Milliseconds(25),
      absl::ZeroDuration(), absl::Seconds(1));
}

const v1::Job& JobManager::StatusOf(JobSlot& slot) {
  const SteadyTime now = options_.clock->Steady();
  if (!slot.exact && slot.job.active() && now - slot.status_at < StatusAge()) {
    return slot.status;
  }
  slot.status = slot.job.Status(
      [this](const TaskRunner& task) { return SurroundingsOf(task); });
  slot.status_at = now;
  slot.exact = false;
  return slot.status;
}

TuningLog::JobProgress JobManager::ProgressOf(JobSlot& slot) {
  slot.changed = true;
  v1::Job job = StatusOf(slot);
  if (!slot.job.active() && job.state() != v1::JOB_STATE_PAUSED) {
    slot.job.NoteEnd(UnixMs());
    job = StatusOf(slot);
  }
  TuningLog::JobProgress progress;
  progress.no_work = IsEnded(job.state());
  progress.job = std::move(job);
  progress.checkpoint = slot.job.Checkpoint(options_.clock->Steady());
  slot.job.FillWork(&progress);
  return progress;
}

void JobManager::SendSaved(JobSlot& slot) {
  if (slot.cancel_all || !slot.uncancelled.empty()) {
    v1::CancelWork cancel;  // without ids: everything
    cancel.set_job_id(slot.job.id());
    for (const std::string& id : slot.uncancelled) cancel.add_work_ids(id);
    options_.dispatcher->CancelWork(cancel);
    slot.uncancelled.clear();
    slot.cancel_all = false;
  }
  if (!slot.unsent.empty()) {
    options_.dispatcher->Submit(std::exchange(slot.unsent, {}));
  }
}

void JobManager::NoteTrouble(const absl::Status& status) {
  if (status.ok()) return;
  trouble_ =
      absl::StrCat("the tuning log cannot be used now: ", status.message());
  // Once per trouble, not once per attempt.
  if (trouble_ != known_trouble_) LOG(kError) << trouble_;
  known_trouble_ = trouble_;
}

TaskSurroundings JobManager::SurroundingsOf(const TaskRunner& task) const {
  TaskSurroundings surroundings;
  surroundings.now = options_.clock->Steady();
  const TaskSpec& spec = task.spec();
  surroundings.device_class = fleet_in_use_->Find(spec.device_class);
  if (!task.active()) return surroundings;
  if (!trouble_.empty()) {
    surroundings.waiting = trouble_;
  } else if (!attached_) {
    surroundings.waiting = "the server has no connection to its tracker";
  } else if (!fleet_in_use_->known()) {
    surroundings.waiting = "the tracker has not told of its boards yet";
  } else {
    surroundings.waiting =
        fleet_in_use_->Obstacle(spec.device_class, task.compiler_version());
  }
  if (!surroundings.waiting.empty()) return surroundings;
  const auto last = last_result_.find({spec.job_id, spec.index});
  const auto wait = waits_.find({spec.job_id, spec.device_class});
  if (wait != waits_.end() && (last == last_result_.end() ||
                               surroundings.now - last->second > kWaitShown)) {
    surroundings.waiting = wait->second;
  }
  return surroundings;
}

}  // namespace regatta
