#include "server/job/task_runner.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compiler/space/space.h"
#include "proto/device_time.h"
#include "proto/outcome_names.h"
#include "storage/tuning_log.h"

namespace regatta {
namespace {

// Every block is a write that is waited for: a task that uses many takes them
// in blocks that double.
constexpr int64_t kFirstOrdinalBlock = 64;
constexpr int64_t kLastOrdinalBlock = 8192;
// Of a task bounded by time: what is kept back for race and confirmation.
constexpr absl::Duration kFinalsTime = absl::Seconds(15);

std::string TrialId(const TaskSpec& spec, int64_t ordinal) {
  return absl::StrCat(spec.job_id, "/", spec.index, "/", ordinal);
}

bool SamePolicy(const v1::Policy& a, const v1::Policy& b) {
  return a.threads() == b.threads() && a.cache() == b.cache();
}

absl::Status NotOfThisTask(const v1::TrialResult& result,
                           std::string_view field) {
  return absl::InvalidArgumentError(
      absl::StrCat("trial ", result.spec().trial_id(), ": its ",
                   std::string(field), " is not what the job asked for"));
}

}  // namespace

uint64_t TaskRunner::ScreeningSeed() const {
  uint64_t seed = 0;
  const std::string digits = spec_.workload.key.substr(0, 16);
  std::from_chars(digits.data(), digits.data() + digits.size(), seed, 16);
  return seed;
}

uint64_t TaskRunner::ConfirmationSeed() const { return ScreeningSeed() + 1; }

absl::Status TaskRunner::Resolve(const std::string& target,
                                 const std::string& compiler_version,
                                 bool simulated) {
  CHECK(!resolved()) << "task " << spec_.index;
  ASSIGN_OR_RETURN(Target parsed, ParseTarget(target));
  SpaceContext context;
  context.workload = spec_.workload;
  context.target = parsed;
  context.threads = spec_.policy.threads();
  // No probed hints: a schedule must mean the same here, on every board of the
  // class and when it is asked for later.
  ASSIGN_OR_RETURN(Space space, Space::Create(std::move(context)));
  space_ = std::make_shared<const Space>(std::move(space));
  default_text_ = space_->Print(space_->Default());
  checkpoint_.simulated = simulated;
  const bool same =
      checkpoint_.target == target && checkpoint_.compiler == compiler_version;
  if (!same) {
    // New, or upgraded in the middle of the job: what is out was made by
    // another compiler and what was learnt may not hold.
    for (const WorkCheckpoint& saved : checkpoint_.in_flight) {
      NoteClosed(saved.number());
    }
    checkpoint_ = TaskCheckpoint{.target = target,
                                 .compiler = compiler_version,
                                 .simulated = simulated,
                                 .search_ms = checkpoint_.search_ms,
                                 .forgiven_below = checkpoint_.forgiven_below};
  }
  for (const WorkCheckpoint& saved : std::exchange(checkpoint_.in_flight, {})) {
    std::vector<v1::TrialSpec> trials;
    for (const WorkCheckpoint::Trial& trial : saved.trials) {
      next_ordinal_ = trial.ordinal;
      v1::TrialSpec spec = MakeTrial(saved.kind, trial.schedule);
      spec.set_incumbent_ns(trial.incumbent_ns);
      trials.push_back(std::move(spec));
    }
    TaskPlan ignored;
    Send(std::move(trials), &ignored);
  }
  next_ordinal_ = ordinal_end_ = 0;  // a fresh block comes when one is needed
  results_ = TaskResults(compiler_version);
  return absl::OkStatus();
}

void TaskRunner::Learn(TaskHistory history) {
  CHECK(resolved()) << "task " << spec_.index;
  for (const v1::TrialResult& result : history.reusable) {
    const v1::ScheduleText& schedule = result.spec().schedule();
    if (schedule.space() == space_->name() &&
        schedule.space_version() == kSpaceVersion) {
      results_.AddFromLog(result);
    }
  }
  for (const v1::TrialResult& result : history.own) {
    const bool wanted = Close(result.spec().trial_id());
    results_.Add(result, std::nullopt, wanted, Forgiven(result));
    KeepRoundResult(result);
  }
  for (const std::string& text : history.suggestions) {
    if (auto schedule = space_->Parse(text);
        schedule.ok() && !space_->Refusal(*schedule)) {
      log_seeds_.push_back(*std::move(schedule));
    } else if (auto adapted = space_->Adapt(text)) {
      log_seeds_.push_back(*std::move(adapted));
    }
  }
  for (const auto& [text, facts] : results_.schedules()) {
    if (facts.from_log && !facts.tried && text != default_text_) ++reused_;
  }
}

void TaskRunner::KeepRoundResult(const v1::TrialResult& result) {
  if (!checkpoint_.round) return;
  for (const RoundCheckpoint::Entry& entry : checkpoint_.round->entries) {
    if (entry.trial_id == result.spec().trial_id()) {
      round_results_[entry.trial_id] = result;
    }
  }
}

absl::Status TaskRunner::Check(const v1::TrialResult& result) const {
  const v1::TrialSpec& spec = result.spec();
  bool asked_for = false;
  if (const auto open = open_trials_.find(spec.trial_id());
      open != open_trials_.end()) {
    const v1::Work& work = open_.at(open->second).work;
    for (const v1::TrialSpec& asked : work.trials()) {
      if (asked.trial_id() != spec.trial_id()) continue;
      if (asked.SerializeAsString() != spec.SerializeAsString()) {
        return NotOfThisTask(result, "specification");
      }
      asked_for = true;
    }
  }
  if (spec.trial_id() != TrialId(spec_, spec.ordinal()) || spec.ordinal() < 0) {
    return NotOfThisTask(result, "trial_id");
  }
  if (ordinal_end_ > 0 && spec.ordinal() >= ordinal_end_) {
    return NotOfThisTask(result, "ordinal");
  }
  if (spec.workload_key() != spec_.workload.key) {
    return NotOfThisTask(result, "workload");
  }
  // The tracker's own verdicts name no device.
  if (spec.device_class() != spec_.device_class ||
      (!result.device_class().empty() &&
       result.device_class() != spec_.device_class)) {
    return NotOfThisTask(result, "device class");
  }
  if (!SamePolicy(spec.policy(), spec_.policy)) {
    return NotOfThisTask(result, "policy");
  }
  if (spec.kind() < v1::TRIAL_KIND_DEFAULT ||
      spec.kind() > v1::TRIAL_KIND_CONFIRM) {
    return NotOfThisTask(result, "kind");
  }
  // What was asked for was made of the space.
  if (!asked_for && resolved() &&
      spec.compiler_version() == compiler_version() &&
      !space_->Parse(spec.schedule().text()).ok()) {
    return NotOfThisTask(result, "schedule");
  }
  return absl::OkStatus();
}

void TaskRunner::TellStrategy(const v1::TrialResult& result) {
  if (strategy_ == nullptr ||
      result.spec().kind() != v1::TRIAL_KIND_CANDIDATE) {
    return;
  }
  const std::string& text = result.spec().schedule().text();
  auto schedule = space_->Parse(text);
  if (!schedule.ok()) return;
  if (!IsCandidateOutcome(result.outcome())) {
    strategy_->Withdraw(*schedule);
    return;
  }
  const auto found = results_.schedules().find(text);
  if (found == results_.schedules().end()) return;
  const ScheduleFacts& facts = found->second;
  strategy_->Tell(
      {*std::move(schedule), facts.usable(), facts.time_ns, facts.abandoned});
}

void TaskRunner::Apply(const v1::TrialResult& result,
                       const TaskResults::Passage& passage) {
  const std::string& id = result.spec().trial_id();
  if (settled_status_) {
    // Settled before a restart: nothing to decide, only to count.
    ++(*settled_status_->mutable_outcomes())[OutcomeName(result.outcome())];
    settled_status_->set_device_ns(settled_status_->device_ns() +
                                   DeviceNs(result));
    if (result.spec().kind() == v1::TRIAL_KIND_CANDIDATE &&
        IsCandidateOutcome(result.outcome())) {
      settled_status_->set_trials(settled_status_->trials() + 1);
    }
    return;
  }
  const bool wanted = Close(id);
  results_.Add(result, passage, wanted, Forgiven(result));
  KeepRoundResult(result);
  if (wanted || IsCandidateOutcome(result.outcome())) TellStrategy(result);
}

absl::Status TaskRunner::EnsureOrdinals(int64_t count, TaskPort& port) {
  if (ordinal_end_ - next_ordinal_ >= count) return absl::OkStatus();
  const int64_t block = std::max(
      count,
      std::clamp(2 * ordinal_block_, kFirstOrdinalBlock, kLastOrdinalBlock));
  ASSIGN_OR_RETURN(next_ordinal_, port.ReserveOrdinals(spec_.index, block));
  ordinal_end_ = next_ordinal_ + block;
  ordinal_block_ = block;
  return absl::OkStatus();
}

v1::TrialSpec TaskRunner::MakeTrial(v1::TrialKind kind,
                                    const std::string& schedule) {
  v1::TrialSpec trial;
  trial.set_trial_id(TrialId(spec_, next_ordinal_));
  trial.set_job_id(spec_.job_id);
  trial.set_task(spec_.index);
  trial.set_ordinal(next_ordinal_++);
  trial.set_kind(kind);
  trial.set_workload(spec_.workload.text);
  trial.set_workload_key(spec_.workload.key);
  trial.set_device_class(spec_.device_class);
  trial.set_target(checkpoint_.target);
  *trial.mutable_policy() = spec_.policy;
  trial.mutable_schedule()->set_space(std::string(space_->name()));
  trial.mutable_schedule()->set_space_version(kSpaceVersion);
  trial.mutable_schedule()->set_text(schedule);
  trial.set_input_seed(kind == v1::TRIAL_KIND_CONFIRM ? ConfirmationSeed()
                                                      : ScreeningSeed());
  trial.set_compiler_version(checkpoint_.compiler);
  return trial;
}

void TaskRunner::Send(std::vector<v1::TrialSpec> trials, TaskPlan* plan) {
  v1::Work work;
  work.set_work_id(trials.front().trial_id());
  work.set_job_id(spec_.job_id);
  work.set_priority(spec_.priority);
  work.set_user(spec_.user);
  work.set_deadline_unix_ms(spec_.deadline_unix_ms);
  work.set_job_weight(spec_.job_weight);
  work.set_task_weight(spec_.weight);
  work.set_device_class(spec_.device_class);
  work.set_compiler_version(checkpoint_.compiler);
  work.set_space(std::string(space_->name()));
  work.set_space_version(kSpaceVersion);
  work.set_mode(trials.size() > 1 ? v1::ASSIGNMENT_MODE_INTERLEAVE
                                  : v1::ASSIGNMENT_MODE_SCREEN);
  OpenWork open;
  for (v1::TrialSpec& trial : trials) {
    open.open.insert(trial.trial_id());
    open_trials_[trial.trial_id()] = work.work_id();
    *work.add_trials() = std::move(trial);
  }
  open.work = work;
  opened_.insert(work.trials(0).ordinal());
  closed_.erase(work.trials(0).ordinal());
  open_[work.work_id()] = std::move(open);
  plan->submit.push_back(std::move(work));
  plan->save = true;
}

bool TaskRunner::Close(const std::string& trial_id) {
  const auto trial = open_trials_.find(trial_id);
  if (trial == open_trials_.end()) return false;
  const auto work = open_.find(trial->second);
  work->second.open.erase(trial_id);
  if (work->second.open.empty()) {
    NoteClosed(work->second.work.trials(0).ordinal());
    open_.erase(work);
  }
  open_trials_.erase(trial);
  return true;
}

void TaskRunner::NoteClosed(int64_t number) {
  if (opened_.erase(number) == 0) closed_.insert(number);
}

void TaskRunner::CancelOpen(TaskPlan* plan) {
  for (const auto& [id, open] : open_) {
    plan->cancel.push_back(id);
    NoteClosed(open.work.trials(0).ordinal());
  }
  if (!open_.empty()) plan->save = true;
  open_.clear();
  open_trials_.clear();
}

std::vector<v1::Work> TaskRunner::InFlight() const {
  std::vector<v1::Work> works;
  for (const auto& [id, open] : open_) works.push_back(open.work);
  return works;
}

void TaskRunner::Settle(v1::JobState state, std::string reason) {
  settled_ = state;
  reason_ = std::move(reason);
}

void TaskRunner::Cancel() {
  if (IsEnded(settled_)) return;
  const std::string reason =
      active() ? "" : absl::StrCat("had been paused: ", reason_);
  Settle(v1::JOB_STATE_CANCELLED, reason);
  if (settled_status_) {
    settled_status_->set_state(v1::JOB_STATE_CANCELLED);
    settled_status_->set_reason(reason);
  }
  open_.clear();
  open_trials_.clear();
}

void TaskRunner::EnterPhase(TaskPhase phase) {
  checkpoint_.phase = phase;
  checkpoint_.round.reset();
  checkpoint_.round_attempts = 0;
  round_results_.clear();
}

absl::Status TaskRunner::Advance(SteadyTime now, int wanted, TaskPort& port,
                                 TaskPlan* plan) {
  CHECK(resolved()) << "task " << spec_.index;
  while (active()) {
    const TaskPhase before = checkpoint_.phase;
    switch (before) {
      case TaskPhase::kDefault:
        RETURN_IF_ERROR(AdvanceDefault(port, plan));
        break;
      case TaskPhase::kSearch:
        RETURN_IF_ERROR(AdvanceSearch(now, wanted, port, plan));
        break;
      case TaskPhase::kRace:
        RETURN_IF_ERROR(AdvanceRace(port, plan));
        break;
      case TaskPhase::kConfirm:
        RETURN_IF_ERROR(AdvanceConfirm(port, plan));
        break;
    }
    if (checkpoint_.phase == before) break;
    plan->save = true;
  }
  if (!active()) {
    CancelOpen(plan);
    plan->save = true;
  }
  return absl::OkStatus();
}

absl::Status TaskRunner::AdvanceDefault(TaskPort& port, TaskPlan* plan) {
  if (!results_.default_failure().empty()) {
    Pause(absl::StrCat("the default schedule failed: ",
                       results_.default_failure()));
  } else if (results_.default_ns() > 0) {
    EnterPhase(TaskPhase::kSearch);
  } else if (results_.infrastructure_streak() >= kMaxLosses) {
    Pause(
        absl::StrCat(kMaxLosses, " measurements of the default in a row ",
                     "were lost; the last: ", results_.last_infrastructure()));
  } else if (open_.empty()) {
    RETURN_IF_ERROR(EnsureOrdinals(1, port));
    Send({MakeTrial(v1::TRIAL_KIND_DEFAULT, default_text_)}, plan);
  }
  return absl::OkStatus();
}

void TaskRunner::StartStrategy() {
  SearchContext context;
  context.space = space_;
  context.seed = spec_.seed;
  for (const auto& [text, facts] : results_.schedules()) {
    auto schedule = space_->Parse(text);
    if (!schedule.ok()) continue;
    context.known.push_back(
        {*std::move(schedule), facts.usable(), facts.time_ns, facts.abandoned});
  }
  for (const auto& [id, open] : open_) {
    for (const v1::TrialSpec& trial : open.work.trials()) {
      auto schedule = space_->Parse(trial.schedule().text());
      if (schedule.ok()) context.pending.push_back(*std::move(schedule));
    }
  }
  context.seeds = log_seeds_;
  for (Schedule& seed : space_->Seeds()) {
    context.seeds.push_back(std::move(seed));
  }
  const StrategyInfo* strategy = FindSearchStrategy(spec_.strategy);
  CHECK(strategy != nullptr) << spec_.strategy;
  strategy_ = strategy->create(std::move(context));
}

bool TaskRunner::Forgiven(const v1::TrialResult& result) const {
  return result.spec().ordinal() < checkpoint_.forgiven_below;
}

bool TaskRunner::GainInSight() const {
  const TaskResults::Entry* best = results_.Best();
  if (spec_.until_gain <= 0 || best == nullptr || results_.default_ns() <= 0 ||
      best->first == default_text_) {
    return false;
  }
  const auto time_ns = static_cast<double>(best->second.time_ns);
  const int64_t asked = checkpoint_.gain_asked_ns;
  return static_cast<double>(results_.default_ns()) >=
             spec_.until_gain * time_ns &&
         (asked == 0 ||
          time_ns <= static_cast<double>(asked) * (1 - kGainStep));
}

absl::Duration TaskRunner::SearchTime(SteadyTime now) const {
  const absl::Duration before = absl::Milliseconds(checkpoint_.search_ms);
  return search_resumed_ ? before + (now - *search_resumed_) : before;
}

void TaskRunner::StopSearchClock(SteadyTime now) {
  checkpoint_.search_ms = absl::ToInt64Milliseconds(SearchTime(now));
  search_resumed_.reset();
}

absl::Duration TaskRunner::SearchLimit() const {
  const absl::Duration all = absl::Milliseconds(spec_.budget_ms);
  return all - std::min(kFinalsTime, all / 5);
}

absl::Status TaskRunner::AdvanceSearch(SteadyTime now, int wanted,
                                       TaskPort& port, TaskPlan* plan) {
  if (strategy_ == nullptr) StartStrategy();
  if (!search_resumed_) search_resumed_ = now;
  if (const std::string error = results_.CommonError(); !error.empty()) {
    StopSearchClock(now);
    Pause(absl::StrCat("the first ", TaskResults::kSameError,
                       " candidates all failed alike: ", error));
    return absl::OkStatus();
  }
  if (results_.infrastructure_streak() >= kMaxLosses) {
    StopSearchClock(now);
    Pause(absl::StrCat(kMaxLosses, " trials in a row were lost; the last: ",
                       results_.last_infrastructure()));
    return absl::OkStatus();
  }
  if (spec_.budget_ms > 0 && SearchTime(now) >= SearchLimit()) {
    checkpoint_.search_over = true;
    CancelOpen(plan);
  }
  if (!checkpoint_.search_over && !checkpoint_.gain_probe && GainInSight()) {
    checkpoint_.gain_probe = true;
    checkpoint_.gain_asked_ns = results_.Best()->second.time_ns;
    plan->save = true;
  }
  const int64_t out = static_cast<int64_t>(open_trials_.size());
  int64_t room = checkpoint_.gain_probe ? 0 : wanted - out;
  if (spec_.budget_trials > 0) {
    const int64_t left = spec_.budget_trials - results_.trials();
    if (left <= 0) checkpoint_.search_over = true;
    room = std::min(room, left - out);
  }
  if (!checkpoint_.search_over && room > 0) {
    RETURN_IF_ERROR(EnsureOrdinals(room, port));
    const TaskResults::Entry* best = results_.Best();
    const auto schedules = strategy_->Ask(static_cast<int>(room));
    for (const Schedule& schedule : schedules) {
      v1::TrialSpec trial =
          MakeTrial(v1::TRIAL_KIND_CANDIDATE, space_->Print(schedule));
      trial.set_incumbent_ns(best == nullptr ? 0 : best->second.time_ns);
      Send({std::move(trial)}, plan);
    }
    if (schedules.empty() && open_.empty()) {
      checkpoint_.search_over = checkpoint_.exhausted = true;
    }
  }
  if (checkpoint_.search_over && open_.empty()) {
    StopSearchClock(now);
    EnterPhase(TaskPhase::kRace);
  } else if (checkpoint_.gain_probe && open_.empty()) {
    EnterPhase(TaskPhase::kRace);  // the time goes on counting
  }
  return absl::OkStatus();
}

}  // namespace regatta
