#include "tests/server/support/server_world.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "proto/outcome_names.h"

namespace regatta::testing {
namespace {

// In memory where there is such a file system: hundreds of restarts, each with
// hundreds of durable writes.
std::string FreshPath() {
  static std::atomic<int> count = 0;
  const std::string dir = std::filesystem::exists("/dev/shm")
                              ? std::string("/dev/shm")
                              : ::testing::TempDir();
  return absl::StrCat(dir, "/regatta_server_test.", getpid(), ".", ++count);
}

}  // namespace

std::shared_ptr<const Space> Landscapes::SpaceFor(const std::string& workload,
                                                  const std::string& target,
                                                  int threads) {
  auto& space = spaces_[absl::StrCat(workload, "@", target, "@", threads)];
  if (space == nullptr) space = SpaceOf(workload, target, threads);
  return space;
}

int64_t Landscapes::TimeNs(const v1::TrialSpec& spec) {
  const auto space =
      SpaceFor(spec.workload(), spec.target(), spec.policy().threads());
  const std::string name = absl::StrCat(spec.workload(), "@", spec.target());
  if (goals_.count(name) == 0) {
    // A good schedule, near one of the seeds: defaults are decent.
    Random random(seed_);
    Schedule goal = space->Default();
    for (int i = 0; i < 6; ++i) {
      if (auto moved = space->Mutate(goal, random)) goal = *moved;
    }
    goals_[name] = goal;
  }
  const Schedule& goal = goals_[name];
  const Schedule schedule = *space->Parse(spec.schedule().text());
  double doublings = 0;
  if (schedule.sketch != goal.sketch) {
    doublings = 20;
  } else {
    for (size_t p = 0; p < goal.parts.size(); ++p) {
      for (size_t k = 0; k < goal.parts[p].size(); ++k) {
        doublings += std::abs(std::log2(schedule.parts[p][k] + 2.0) -
                              std::log2(goal.parts[p][k] + 2.0));
      }
    }
  }
  return static_cast<int64_t>(1'000'000 * (1 + 0.1 * doublings));
}

ServerWorld::ServerWorld(SimulatedFleet::Options options, bool boards)
    : path_(FreshPath()), landscapes_(options.seed) {
  std::filesystem::create_directories(path_);
  auto log = OpenTuningLog(path_ + "/log.db");
  CHECK(log.ok()) << log.status();
  log_ = *std::move(log);
  crashing_ = std::make_unique<CrashingLog>(log_.get());
  if (!options.measure) {
    options.measure = [this](const v1::TrialSpec& spec) {
      return Measurement{.time_ns = landscapes_.TimeNs(spec)};
    };
  }
  fleet_ = std::make_unique<SimulatedFleet>(&clock_, std::move(options));
  if (boards) fleet_->AddBoard({.id = "board-0", .target = kTargetText});
  Start();
}

ServerWorld::~ServerWorld() {
  Kill();
  log_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void ServerWorld::Start() {
  JobManagerOptions options;
  options.log = crashing_.get();
  options.dispatcher = fleet_.get();
  options.clock = &clock_;
  options.compiler_version = [this](const Target&) { return compiler; };
  options.seed = 99;
  options.max_unstored = max_unstored;
  auto jobs = JobManager::Create(std::move(options));
  CHECK(jobs.ok()) << jobs.status();
  jobs_ = *std::move(jobs);
  fleet_->Connect(jobs_.get());
}

void ServerWorld::Restart() {
  while (true) {
    Kill();
    try {
      Start();
      return;
    } catch (const Crash&) {
    }
  }
}

void ServerWorld::Kill() {
  fleet_->Disconnect(/*tell=*/false);
  jobs_.reset();
}

v1::SubmitJobRequest ServerWorld::Request(const std::string& workload,
                                          int64_t trials) {
  v1::SubmitJobRequest request;
  v1::TaskRequest* task = request.add_tasks();
  task->set_workload(workload);
  task->set_trials(trials);
  task->add_device_classes(kClass);
  request.set_seed(4);
  request.set_has_seed(true);
  return request;
}

int64_t ServerWorld::Submit(const v1::SubmitJobRequest& request) {
  jobs_->Step();  // takes in what the fleet said
  const auto job = jobs_->Submit(request);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? job->job_id() : -1;
}

void ServerWorld::Turn() {
  try {
    if (!fleet_->WorkOne()) clock_.Advance(absl::Milliseconds(200));
    jobs_->Step();
  } catch (const Crash&) {
    Restart();
  }
}

bool ServerWorld::RunToEnd(int64_t job_id, int steps) {
  for (int i = 0; i < steps; ++i) {
    const v1::JobState state = Job(job_id).state();
    if (IsEnded(state) || state == v1::JOB_STATE_PAUSED) return true;
    Turn();
    if (i % 50 == 49) fleet_->Flush();
  }
  return false;
}

v1::Job ServerWorld::Job(int64_t job_id) {
  const auto job = jobs_->Get(job_id);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? *job : v1::Job();
}

BestKey ServerWorld::Key(const std::string& workload,
                         const std::string& device_class) {
  return {WorkloadOf(workload).key, device_class, 1, v1::CACHE_STATE_WARM};
}

std::vector<StoredRecord> ServerWorld::Records(const std::string& workload) {
  std::vector<StoredRecord> records;
  RecordFilter filter;
  filter.workload_key = WorkloadOf(workload).key;
  const absl::Status status =
      log_->ForEachRecord(filter, [&](const StoredRecord& record) {
        records.push_back(record);
        return true;
      });
  EXPECT_TRUE(status.ok()) << status;
  return records;
}

void ServerWorld::CheckInvariants(int64_t job_id) {
  // What is still under way comes in.
  fleet_->Flush();
  while (jobs_->Step()) {
  }
  EXPECT_TRUE(fleet_->spool().empty()) << "a result was never acknowledged";
  EXPECT_TRUE(fleet_->held().empty()) << "work was left behind";
  const v1::Job job = Job(job_id);
  for (const v1::TaskStatus& task : job.tasks()) {
    std::map<std::string, int64_t> outcomes;
    std::set<std::string> ids, tried, wrong;
    int64_t candidates = 0;
    for (const StoredRecord& record : Records(task.workload())) {
      const v1::TrialResult& result = record.result;
      const v1::TrialSpec& spec = result.spec();
      if (spec.job_id() != job_id ||
          spec.device_class() != task.device_class()) {
        continue;
      }
      ++outcomes[OutcomeName(result.outcome())];
      EXPECT_TRUE(ids.insert(spec.trial_id()).second) << spec.trial_id();
      if (!IsCandidateOutcome(result.outcome())) continue;
      if (result.outcome() == v1::OUTCOME_WRONG_RESULT) {
        wrong.insert(spec.schedule().text());
      }
      if (spec.kind() != v1::TRIAL_KIND_CANDIDATE) continue;
      ++candidates;
      EXPECT_TRUE(tried.insert(spec.schedule().text()).second)
          << "tried twice: " << spec.schedule().text();
    }
    const std::map<std::string, int64_t> shown(task.outcomes().begin(),
                                               task.outcomes().end());
    EXPECT_EQ(shown, outcomes);
    EXPECT_EQ(task.trials(), candidates);
    if (task.budget_trials() > 0) {
      EXPECT_LE(task.trials(), task.budget_trials());
      if (task.state() == v1::JOB_STATE_DONE &&
          task.ended_by() != "until_gain") {
        EXPECT_EQ(task.trials(), task.budget_trials());
      }
    }
    EXPECT_EQ(wrong.count(task.schedule()), 0u) << "a wrong kernel is best";
    if (task.confirmed()) {
      const auto best = log_->Best(Key(task.workload(), task.device_class()));
      ASSERT_TRUE(best.ok() && best->has_value());
      EXPECT_EQ((*best)->record.result.spec().schedule().text(),
                task.schedule());
      EXPECT_TRUE((*best)->confirmed);
      EXPECT_GE(task.speedup(), 1);
    }
  }
  for (const v1::TrialAck& ack : fleet_->acks()) {
    EXPECT_NE(ack.status(), v1::ACK_STATUS_REJECTED) << ack.reason();
  }
}

}  // namespace regatta::testing
