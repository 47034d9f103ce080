#include "server/job/job_manager.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "compiler/space/space.h"
#include "proto/outcome_names.h"

namespace regatta {
namespace {

// The version of every job that only the log holds: it never changes again.
constexpr int64_t kVersionInLog = -1;

}  // namespace

JobManager::JobManager(JobManagerOptions options)
    : options_(std::move(options)),
      seeds_(options_.seed),
      fleet_in_use_(std::make_shared<const FleetView>()),
      canaries_(options_.compiler_version),
      fleet_(fleet_in_use_) {}

JobManager::~JobManager() { Close(); }

absl::StatusOr<std::unique_ptr<JobManager>> JobManager::Create(
    JobManagerOptions options) {
  std::unique_ptr<JobManager> manager(new JobManager(std::move(options)));
  RETURN_IF_ERROR(manager->Load());
  return manager;
}

absl::Status JobManager::Load() {
  std::lock_guard step(step_mutex_);
  ASSIGN_OR_RETURN(const auto stored_jobs, options_.log->ListJobs());
  size_t ended = 0;
  for (const TuningLog::StoredJob& stored : stored_jobs) {
    newest_id_ = std::max(newest_id_, stored.job.job_id());
    auto job = stored.damage.empty() ? ManagedJob::Load(stored)
                                     : absl::DataLossError(stored.damage);
    if (!job.ok()) {
      // The other jobs go on; this one says why it cannot.
      LOG(kError) << "job " << stored.job.job_id() << ": " << job.status();
      v1::Job broken = stored.job;
      if (!IsEnded(broken.state())) {
        broken.set_state(v1::JOB_STATE_FAILED);
        broken.set_reason(std::string(job.status().message()));
      }
      broken_.insert(broken.job_id());
      PublishJob(std::move(broken));
      continue;
    }
    for (const TaskRunner& task : job->tasks()) {
      if (!task.target().empty()) {
        known_classes_[task.spec().device_class] = {task.target(),
                                                    task.simulated()};
      }
    }
    const bool has_ended = IsEnded(stored.job.state());
    if (has_ended && ++ended > kKeptEnded) {
      ended_forgotten_ = true;
      continue;
    }
    JobSlot& slot = jobs_.try_emplace(job->id(), *std::move(job)).first->second;
    slot.ended = has_ended;
  }
  for (auto& [id, slot] : jobs_) {
    for (TaskRunner& task : slot.job.tasks()) {
      if (task.active()) {
        RETURN_IF_ERROR(PrepareTask(task));
        slot.dirty = slot.dirty || !task.active();
      }
      // Boards may be busy with this very task: no wait is shown at once.
      if (task.begun()) {
        last_result_[{id, task.spec().index}] = options_.clock->Steady();
      }
    }
    PublishSnapshot(slot);
    if (slot.job.active()) has_active_job_ = true;
  }
  return absl::OkStatus();
}

int64_t JobManager::UnixMs() const {
  return absl::ToUnixMillis(options_.clock->Wall());
}

std::optional<KnownClass> JobManager::FindClass(
    const std::string& device_class) const {
  std::lock_guard lock(view_mutex_);
  const auto found = known_classes_.find(device_class);
  if (found == known_classes_.end()) return std::nullopt;
  return found->second;
}

std::map<std::string, KnownClass> JobManager::KnownClasses() const {
  std::lock_guard lock(view_mutex_);
  return {known_classes_.begin(), known_classes_.end()};
}

absl::StatusOr<std::vector<std::string>> JobManager::LoggedClasses(
    bool imported) const {
  ASSIGN_OR_RETURN(const auto logged, options_.log->DeviceClasses(imported));
  std::set<std::string> classes(logged.begin(), logged.end());
  std::lock_guard lock(view_mutex_);
  for (const auto& [name, known] : known_classes_) classes.insert(name);
  return std::vector<std::string>(classes.begin(), classes.end());
}

// Refuses at submission what would fail when the task starts.
absl::Status JobManager::CheckSpaces(
    const v1::SubmitJobRequest& request) const {
  ASSIGN_OR_RETURN(const std::vector<TaskSpec> specs, ExpandTasks(0, request));
  for (const TaskSpec& spec : specs) {
    const auto known = FindClass(spec.device_class);
    if (!known) continue;
    auto target = ParseTarget(known->target);
    if (!target.ok()) return target.status();
    SpaceContext context;
    context.workload = spec.workload;
    context.target = *target;
    context.threads = spec.policy.threads();
    const auto space = Space::Create(std::move(context));
    if (!space.ok()) {
      return Annotate(space.status(), absl::StrCat(spec.workload.text, " on ",
                                                   spec.device_class));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Job> JobManager::Submit(
    const v1::SubmitJobRequest& request) {
  std::lock_guard step(step_mutex_);
  if (!request.request_id().empty()) {
    for (const auto& [id, slot] : jobs_) {
      if (slot.job.request_id() == request.request_id()) return Get(id);
    }
  }
  const std::shared_ptr<const FleetView> fleet = this->fleet();
  RequestContext context;
  context.fleet = fleet.get();
  // A class that only another log had boards of would be waited for in vain.
  ASSIGN_OR_RETURN(context.logged_classes, LoggedClasses(/*imported=*/false));
  context.drawn_seed = seeds_.Next();
  ASSIGN_OR_RETURN(const v1::SubmitJobRequest full,
                   NormaliseJobRequest(request, context));
  RETURN_IF_ERROR(CheckSpaces(full));
  ASSIGN_OR_RETURN(const int64_t id, options_.log->CreateJob(full, UnixMs()));
  // Of a request_id whose job ended long ago.
  if (id <= newest_id_) return Get(id);
  newest_id_ = id;
  ASSIGN_OR_RETURN(ManagedJob job, ManagedJob::Create(id, full, UnixMs()));
  JobSlot& slot = jobs_.try_emplace(id, std::move(job)).first->second;
  slot.dirty = true;
  AdvanceJob(slot);
  FlushJob(slot);
  PublishSnapshot(slot);
  {
    std::lock_guard lock(events_mutex_);  // so that Run does not miss it
    has_active_job_ = true;
  }
  events_ready_.notify_all();
  return Get(id);
}

absl::StatusOr<v1::Job> JobManager::Get(int64_t job_id) const {
  int64_t newest = 0;
  {
    std::lock_guard lock(view_mutex_);
    const auto found = snapshots_.find(job_id);
    if (found != snapshots_.end()) return found->second.job;
    if (!snapshots_.empty()) newest = snapshots_.rbegin()->first;
  }
  if (job_id > 0 && job_id < newest) {
    auto stored = options_.log->GetJob(job_id);
    if (stored.ok()) return std::move(stored->job);
    if (!absl::IsNotFound(stored.status())) return stored.status();
  }
  return absl::NotFoundError(
      absl::StrCat("there is no job ", job_id, "; ",
                   newest == 0 ? "no job was submitted yet"
                               : absl::StrCat("the newest is ", newest)));
}

absl::StatusOr<std::vector<v1::Job>> JobManager::List() const {
  std::vector<v1::Job> jobs;
  bool more = false;
  {
    std::lock_guard lock(view_mutex_);
    for (auto it = snapshots_.rbegin(); it != snapshots_.rend(); ++it) {
      jobs.push_back(it->second.job);
    }
    more = ended_forgotten_;
  }
  if (!more) return jobs;
  std::set<int64_t> listed;
  for (const v1::Job& job : jobs) listed.insert(job.job_id());
  ASSIGN_OR_RETURN(auto stored, options_.log->ListJobs());
  for (TuningLog::StoredJob& one : stored) {
    if (listed.count(one.job.job_id()) == 0 && IsEnded(one.job.state())) {
      jobs.push_back(std::move(one.job));
    }
  }
  std::sort(jobs.begin(), jobs.end(), [](const v1::Job& a, const v1::Job& b) {
    return a.job_id() > b.job_id();
  });
  return jobs;
}

absl::Status JobManager::LoadEnded(int64_t job_id) {
  if (job_id <= 0 || job_id > newest_id_) {
    return absl::NotFoundError(
        absl::StrCat("this tuning log has no job ", job_id));
  }
  if (broken_.count(job_id) > 0) {
    return absl::NotFoundError(
        absl::StrCat("job ", job_id, " of this tuning log is damaged"));
  }
  ASSIGN_OR_RETURN(const TuningLog::StoredJob stored,
                   options_.log->GetJob(job_id));
  if (!IsEnded(stored.job.state())) {
    return absl::NotFoundError(
        absl::StrCat("job ", job_id, " of this tuning log never started"));
  }
  ASSIGN_OR_RETURN(ManagedJob job, ManagedJob::Load(stored));
  JobSlot& slot = jobs_.try_emplace(job_id, std::move(job)).first->second;
  slot.ended = true;  // so that it is forgotten again
  PublishSnapshot(slot);
  return absl::OkStatus();
}

void JobManager::ForgetEnded() {
  std::vector<int64_t> ended;  // oldest first
  for (const auto& [id, slot] : jobs_) {
    if (slot.ended && !slot.dirty) ended.push_back(id);
  }
  if (ended.size() <= kKeptEnded) return;
  ended.resize(ended.size() - kKeptEnded);
  {
    std::lock_guard lock(view_mutex_);
    for (const int64_t id : ended) {
      const auto& tasks = jobs_.at(id).job.tasks();
      for (const TaskRunner& task : tasks) {
        last_result_.erase({id, task.spec().index});
      }
      jobs_.erase(id);
      snapshots_.erase(id);
    }
    ended_forgotten_ = true;
  }
  view_changed_.notify_all();
}

absl::StatusOr<v1::Job> JobManager::Resume(int64_t job_id) {
  std::lock_guard step(step_mutex_);
  ASSIGN_OR_RETURN(const v1::Job job, Get(job_id));
  const auto found = jobs_.find(job_id);
  std::vector<int> paused;
  for (int i = 0; i < job.tasks_size(); ++i) {
    if (job.tasks(i).state() == v1::JOB_STATE_PAUSED) paused.push_back(i);
  }
  if (IsEnded(job.state()) || paused.empty() || found == jobs_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job_id, " has no paused task: it is ",
                     JobStateName(job.state())));
  }
  std::vector<int64_t> ordinals;
  for (const int index : paused) {
    ASSIGN_OR_RETURN(ordinals.emplace_back(),
                     options_.log->ReserveOrdinals(job_id, index, 1));
  }
  JobSlot& slot = found->second;
  for (size_t i = 0; i < paused.size(); ++i) {
    slot.job.ResumeTask(paused[i], ordinals[i]);
    last_result_.erase({job_id, paused[i]});
  }
  slot.dirty = true;
  AdvanceJob(slot);
  FlushJob(slot);
  PublishSnapshot(slot);
  {
    std::lock_guard lock(events_mutex_);  // so that Run does not miss it
    has_active_job_ = true;
  }
  events_ready_.notify_all();
  if (slot.dirty) return absl::UnavailableError(trouble_);
  return Get(job_id);
}

absl::StatusOr<v1::Job> JobManager::Cancel(int64_t job_id) {
  std::lock_guard step(step_mutex_);
  ASSIGN_OR_RETURN(const v1::Job job, Get(job_id));
  const auto found = jobs_.find(job_id);
  if (IsEnded(job.state()) || found == jobs_.end()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", job_id, " has ended already: ", JobStateName(job.state())));
  }
  JobSlot& slot = found->second;
  slot.job.Cancel();
  slot.job.NoteEnd(UnixMs());
  slot.unsent.clear();
  slot.uncancelled.clear();
  slot.cancel_all = true;
  slot.dirty = true;
  FlushJob(slot);
  PublishSnapshot(slot);
  if (slot.dirty) return absl::UnavailableError(trouble_);
  return Get(job_id);
}

absl::StatusOr<v1::Job> JobManager::WaitForChange(int64_t job_id,
                                                  absl::Duration timeout,
                                                  int64_t* version) const {
  std::unique_lock lock(view_mutex_);
  auto found = snapshots_.end();
  view_changed_.wait_for(lock, absl::ToChronoMilliseconds(timeout), [&] {
    found = snapshots_.find(job_id);  // it may be forgotten meanwhile
    const int64_t now =
        found == snapshots_.end() ? kVersionInLog : found->second.version;
    return view_closed_ || now != *version;
  });
  if (view_closed_) {
    return absl::UnavailableError("the server is shutting down");
  }
  if (found == snapshots_.end()) {
    lock.unlock();
    *version = kVersionInLog;
    return Get(job_id);  // from the log, or NotFound with its words
  }
  const Snapshot& snapshot = found->second;
  *version = snapshot.version;
  return snapshot.job;
}

std::shared_ptr<const FleetView> JobManager::fleet() const {
  std::lock_guard lock(view_mutex_);
  return fleet_;
}

JobCounts JobManager::Count() const {
  JobCounts counts;
  counts.attached = attached_;
  std::lock_guard lock(view_mutex_);
  for (const auto& [id, snapshot] : snapshots_) {
    if (!IsEnded(snapshot.job.state())) ++counts.open[snapshot.job.state()];
  }
  return counts;
}

std::string JobManager::MeasureProtocol(const std::string& device_class) const {
  std::lock_guard lock(view_mutex_);
  const auto found = protocols_.find(device_class);
  return found == protocols_.end() ? "" : found->second;
}

void JobManager::OnAttached(const v1::Attached& attached) {
  {
    std::lock_guard mirror(mirror_mutex_);
    mirror_.NewStream();
  }
  {
    std::lock_guard lock(events_mutex_);
    events_.attached = std::make_unique<v1::Attached>(attached);
    events_.detached = false;
  }
  events_ready_.notify_all();
}

void JobManager::OnDetached() {
  {
    std::lock_guard lock(events_mutex_);
    events_.attached.reset();
    events_.detached = true;
  }
  events_ready_.notify_all();
}

void JobManager::OnResults(std::vector<v1::TrialResult> results) {
  const SteadyTime now = options_.clock->Steady();
  {
    std::lock_guard lock(events_mutex_);
    for (v1::TrialResult& result : results) {
      events_.results.push_back({std::move(result), now});
    }
  }
  events_ready_.notify_all();
}

void JobManager::OnFleetChange(const v1::FleetChange& change) {
  std::lock_guard mirror(mirror_mutex_);
  if (absl::Status status = mirror_.Apply(change); !status.ok()) {
    LOG(kWarning) << status.message() << "; asking for all of them again";
    options_.dispatcher->AskFleet();
    return;
  }
  if (!mirror_.whole()) return;
  const std::set<std::string> changed = mirror_.TakeChanged();
  auto view =
      std::make_shared<const FleetView>(fleet()->With(mirror_, changed));
  {
    std::lock_guard lock(view_mutex_);
    fleet_ = view;
    for (const std::string& name : changed) {
      const ClassView* device_class = view->Find(name);
      if (device_class == nullptr) continue;
      known_classes_[name] = {device_class->target, device_class->simulated};
    }
  }
  {
    std::lock_guard lock(events_mutex_);
    events_.fleet = std::move(view);
  }
  events_ready_.notify_all();
}

void JobManager::OnWaitReport(const v1::WaitReport& report) {
  {
    std::lock_guard lock(events_mutex_);
    events_.wait_report = std::make_unique<v1::WaitReport>(report);
  }
  events_ready_.notify_all();
}

void JobManager::Run() {
  while (true) {
    {
      std::unique_lock lock(events_mutex_);
      const auto ready = [&] { return closed_ || !events_.empty(); };
      // Jobs that run are looked at once a second besides: for deadlines, for
      // rates that fall, and for a log that could not be written.
      if (has_active_job_) {
        events_ready_.wait_for(lock, std::chrono::seconds(1), ready);
      } else {
        events_ready_.wait(lock, [&] { return ready() || has_active_job_; });
      }
      if (closed_) return;
    }
    Step();
  }
}

void JobManager::Close() {
  {
    std::lock_guard lock(events_mutex_);
    closed_ = true;
  }
  events_ready_.notify_all();
  {
    std::lock_guard lock(view_mutex_);
    view_closed_ = true;
  }
  view_changed_.notify_all();
}

void JobManager::PublishJob(v1::Job job) {
  {
    std::lock_guard lock(view_mutex_);
    Snapshot& snapshot = snapshots_[job.job_id()];
    if (snapshot.version > 0 &&
        snapshot.job.SerializeAsString() == job.SerializeAsString()) {
      return;
    }
    ++snapshot.version;
    snapshot.job = std::move(job);
  }
  view_changed_.notify_all();
}

void JobManager::PublishSnapshot(JobSlot& slot) {
  slot.changed = false;
  slot.exact = true;
  PublishJob(StatusOf(slot));
}

void JobManager::PublishSnapshots() {
  const SteadyTime now = options_.clock->Steady();
  const bool all = !refreshed_ || now - *refreshed_ >= absl::Seconds(1);
  if (all) refreshed_ = now;
  for (auto& [id, slot] : jobs_) {
    const bool waits = slot.job.active() && !slot.exact &&
                       now - slot.published_at < StatusAge();
    if ((slot.changed && !waits) || (all && slot.job.active())) {
      slot.published_at = now;
      PublishSnapshot(slot);
    }
  }
}

}  // namespace regatta
