#include "tests/fleet_sim/campaign.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <thread>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/ops/op.h"
#include "compiler/space/space.h"
#include "device_agent/tracker_client.h"
#include "proto/device_class.h"
#include "proto/outcome_names.h"
#include "tests/fleet_sim/break_connections.h"

namespace regatta::fleet_sim {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(50);
constexpr absl::Duration kShowEvery = absl::Seconds(5);
// The jobs' own end: what a task bounded by time keeps for race and
// confirmation, and the trials that are under way.
constexpr absl::Duration kFinals = absl::Seconds(15);
constexpr absl::Duration kEndLimit = absl::Minutes(10);
constexpr char kTarget[] =
    "cpu,triple=x86_64-linux-gnu,mcpu=znver4,vector_bits=512,"
    "vector_registers=32";
// What is wanted. Rates: of what so many boards can make at all.
constexpr double kReturnSeconds = 90;
constexpr double kHeartbeatP99Ms = 250;
constexpr double kShareOfBoards = 0.95;
constexpr double kTrackerMib = 2048;
// Spaces that no run exhausts.
constexpr const char* kWorkloads[] = {
    "matmul(m=512,n=512,k=512)", "matmul(m=1024,n=768,k=640)",
    "matmul(m=384,n=960,k=2048)", "matmul(m=2048,n=320,k=1280)"};

std::vector<std::string> TrackerArguments(const CampaignOptions& options) {
  const auto ms = [](absl::Duration d) {
    return absl::StrCat(absl::ToInt64Milliseconds(d));
  };
  const absl::Duration beat = options.heartbeat;
  return {"--heartbeat-ms",      ms(beat),     "--lease-ms",    ms(beat * 6),
          "--suspect-ms",        ms(beat * 3), "--lost-ms",     ms(beat * 6),
          "--restart-window-ms", ms(beat * 9), "--auto-approve"};
}

std::string Ms(absl::Duration time) {
  return absl::StrFormat("%.1f ms", absl::ToDoubleMilliseconds(time));
}

std::string Times(const Histogram& times) {
  if (times.count() == 0) return "none";
  return absl::StrCat("p50 ", Ms(times.Quantile(0.5)), ", p99 ",
                      Ms(times.Quantile(0.99)), ", longest ",
                      Ms(times.longest()));
}

double Mib(int64_t bytes) {
  return static_cast<double>(bytes) / (int64_t{1} << 20);
}

}  // namespace

// What was measured in a stretch of time.
struct Campaign::Phase {
  std::string name;
  absl::Duration took;
  WorldCounts before, after;
  SimWorld::Times times;
  // Processor time that each used, by its name.
  std::vector<std::pair<std::string, absl::Duration>> cpu;

  double PerSecond(int64_t WorldCounts::*count) const {
    return static_cast<double>(after.*count - before.*count) /
           absl::ToDoubleSeconds(took);
  }
};

Campaign::Campaign(CampaignOptions options)
    : options_(std::move(options)), clock_(RealClock()) {}

Campaign::~Campaign() = default;

std::vector<v1::Hello> Campaign::Boards() const {
  const int classes = (options_.boards + options_.boards_per_class - 1) /
                      options_.boards_per_class;
  std::vector<v1::Hello> boards;
  for (int i = 0; i < options_.boards; ++i) {
    v1::Hello hello;
    const std::string name =
        absl::StrFormat("%sboard-%05d", kSimulatedPrefix, i);
    hello.set_agent_id(name);
    hello.set_boot_id(absl::StrCat("boot-", i));
    hello.set_agent_version("simulated");
    hello.set_compiler_version(CompilerVersionOfKind("cpu"));
    hello.set_space("cpu");
    hello.set_space_version(kSpaceVersion);
    hello.set_sandbox("none: runs nothing");
    v1::DeviceInfo* device = hello.add_devices();
    device->set_device_id(name);
    device->set_device_class(
        absl::StrFormat("%sclass-%03d", kSimulatedPrefix, i % classes));
    device->set_target(kTarget);
    device->set_cores(1);
    device->set_cpu_list("0");
    device->set_memory_bytes(int64_t{4} << 30);
    device->set_simulated(true);
    device->set_l1_bytes(32 << 10);
    device->set_l2_bytes(1 << 20);
    device->set_l3_bytes(32 << 20);
    device->set_peak_flops_per_s(1.1e11);
    device->set_bandwidth_bytes_per_s(2e10);
    device->set_noise_floor(0.01);
    device->set_has_noise_floor(true);
    device->set_marketing_name("a board that is simulated");
    device->set_health("ok");
    device->set_credit(options_.credit);
    boards.push_back(std::move(hello));
  }
  return boards;
}

void Campaign::Row(const std::string& what, const std::string& value) {
  rows_.emplace_back(what, value);
}

absl::Status Campaign::Watch(const std::string& name, absl::Duration limit,
                             bool may_end, const std::function<bool()>& done) {
  Phase phase;
  phase.name = name;
  const auto costs = [this] {
    return std::vector<std::pair<std::string, absl::Duration>>{
        {"tracker", CostOf(daemons_->tracker_pid()).cpu},
        {"server", CostOf(daemons_->server_pid()).cpu},
        {"boards", CostOf(getpid()).cpu}};
  };
  world_->TakeTimes();
  phase.before = world_->Counts();
  const auto cpu_before = costs();
  const SteadyTime start = clock_.Steady();
  SteadyTime show_at = start + kShowEvery;
  WorldCounts shown = phase.before;
  SteadyTime shown_at = start;
  absl::Status status;
  while (true) {
    const SteadyTime now = clock_.Steady();
    if (done()) break;
    if (std::string death = daemons_->Death(); !death.empty()) {
      return absl::InternalError(absl::StrCat(name, ": ", death));
    }
    if (now - start >= limit) {
      const WorldCounts counts = world_->Counts();
      if (!may_end) {
        status = absl::InternalError(absl::StrCat(
            name, ": not over after ", absl::FormatDuration(limit), ": ",
            counts.welcomed, " of ", options_.boards, " boards attached, ",
            counts.held, " assignments held, ", counts.spooled,
            " results not acknowledged"));
      }
      break;
    }
    if (now >= show_at) {
      show_at = now + kShowEvery;
      const WorldCounts counts = world_->Counts();
      const double seconds = absl::ToDoubleSeconds(now - shown_at);
      absl::PrintF(
          "%5.0f s  %-12s %5d attached  %6.0f beats/s  %6.0f acks/s  "
          "%6d held  %6d spooled  tracker %.0f MiB  server %.0f MiB\n",
          absl::ToDoubleSeconds(now - began_), name, counts.welcomed,
          static_cast<double>(counts.heartbeats - shown.heartbeats) / seconds,
          static_cast<double>(counts.acknowledged - shown.acknowledged) /
              seconds,
          counts.held, counts.spooled,
          Mib(CostOf(daemons_->tracker_pid()).rss_bytes),
          Mib(CostOf(daemons_->server_pid()).rss_bytes));
      std::cout.flush();
      shown = counts;
      shown_at = now;
    }
    std::this_thread::sleep_for(absl::ToChronoNanoseconds(kPoll));
  }
  phase.took = clock_.Steady() - start;
  phase.after = world_->Counts();
  phase.times = world_->TakeTimes();
  phase.cpu = costs();
  for (size_t i = 0; i < phase.cpu.size(); ++i) {
    phase.cpu[i].second -= cpu_before[i].second;
  }
  phases_.push_back(std::move(phase));
  return status;
}

absl::Status Campaign::WatchReturn(const std::string& name) {
  return Watch(name, options_.limit, /*may_end=*/false,
               [this] { return world_->Counts().arrived >= options_.boards; });
}

absl::Status Campaign::Prepare() {
  std::vector<std::string> tracker = TrackerArguments(options_);
  std::vector<std::string> server;
  std::shared_ptr<TlsIdentity> person;
  std::vector<v1::Hello> boards = Boards();
  std::vector<std::shared_ptr<TlsIdentity>> identities(boards.size());
  if (options_.tls) {
    ASSIGN_OR_RETURN(lab_, SimLab::Create(options_.dir));
    for (const auto& [role, name, arguments] :
         {std::tuple{Role::kTracker, "tracker-1", &tracker},
          std::tuple{Role::kServer, "server-1", &server}}) {
      ASSIGN_OR_RETURN(const std::string folder, lab_->Folder(role, name));
      arguments->insert(arguments->end(), {"--tls", folder});
    }
    ASSIGN_OR_RETURN(person, lab_->Open(Role::kSubmitter, "person-1"));
    for (size_t i = 0; i < boards.size(); ++i) {
      ASSIGN_OR_RETURN(identities[i],
                       lab_->Open(Role::kAgent, boards[i].agent_id()));
    }
  }
  daemons_ = std::make_unique<Daemons>(options_.dir, tracker, server);
  daemons_->StartTracker();
  daemons_->StartServer();
  jobs_ = std::make_unique<JobsClient>(daemons_->server(), person);
  RETURN_IF_ERROR(jobs_->WaitReady(absl::Seconds(30)));
  world_ = std::make_unique<SimWorld>(
      options_.world, std::move(boards),
      [address = daemons_->tracker(), identities](size_t index) {
        return std::make_unique<TrackerClient>(address, identities[index]);
      });
  return absl::OkStatus();
}

absl::Status Campaign::Attach() {
  RETURN_IF_ERROR(WatchReturn("attach"));
  Row(absl::StrCat("all ", options_.boards, " boards attached after"),
      absl::StrFormat("%.1f s", absl::ToDoubleSeconds(phases_.back().took)));
  targets_.AtMost("all attached", kReturnSeconds,
                  absl::ToDoubleSeconds(phases_.back().took), "s");
  return absl::OkStatus();
}

absl::Status Campaign::SubmitJobs() {
  const int classes = (options_.boards + options_.boards_per_class - 1) /
                      options_.boards_per_class;
  absl::Duration time = options_.load + options_.after + kFinals;
  if (options_.cut_all) time += absl::Seconds(30);
  if (options_.kill_tracker) time += absl::Seconds(30);
  for (int c = 0; c < classes; ++c) {
    v1::SubmitJobRequest request;
    request.set_name(absl::StrCat("fleet_sim ", c));
    request.set_strategy(options_.strategy);
    request.set_has_seed(true);
    request.set_seed(options_.world.seed + static_cast<uint64_t>(c));
    for (int w = 0; w < options_.workloads; ++w) {
      v1::TaskRequest* task = request.add_tasks();
      task->set_workload(kWorkloads[w]);
      task->add_device_classes(
          absl::StrFormat("%sclass-%03d", kSimulatedPrefix, c));
      if (options_.trials > 0) {
        task->set_trials(options_.trials);
      } else {
        task->set_minutes(absl::ToDoubleMinutes(time));
      }
    }
    const SteadyTime start = clock_.Steady();
    auto job = jobs_->Submit(request);
    // The server hears of the boards a moment after they do of the tracker.
    while (
        !job.ok() && clock_.Steady() - start < absl::Seconds(60) &&
        (absl::IsNotFound(job.status()) || absl::IsUnavailable(job.status()))) {
      std::this_thread::sleep_for(absl::ToChronoNanoseconds(kPoll));
      job = jobs_->Submit(request);
    }
    RETURN_IF_ERROR(job.status());
  }
  return absl::OkStatus();
}

absl::Status Campaign::Load() {
  RETURN_IF_ERROR(Watch("first trials", options_.limit, /*may_end=*/false,
                        [this] { return world_->Counts().acknowledged > 0; }));
  RETURN_IF_ERROR(
      Watch("load", options_.load, /*may_end=*/true, [] { return false; }));
  AimLoad();
  return absl::OkStatus();
}

void Campaign::AimLoad() {
  const Phase& load = phases_.back();
  const auto most = [this](absl::Duration each) {
    return kShareOfBoards * options_.boards / absl::ToDoubleSeconds(each);
  };
  targets_.AtLeast("heartbeats answered", most(options_.heartbeat),
                   load.PerSecond(&WorldCounts::heartbeats), "/s");
  targets_.AtMost(
      "heartbeat's answer, p99", kHeartbeatP99Ms,
      absl::ToDoubleMilliseconds(load.times.heartbeats.Quantile(0.99)), "ms");
  targets_.AtLeast("results acknowledged", most(options_.world.habits.trial),
                   load.PerSecond(&WorldCounts::acknowledged), "/s");
}

absl::Status Campaign::CutAll() {
  const std::string address = daemons_->tracker();
  int port = 0;
  CHECK(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  world_->Mark();
  const int broken = BreakConnections(port);
  RETURN_IF_ERROR(WatchReturn("return"));
  Row(absl::StrCat(broken, " connections broken at once: all back after"),
      absl::StrFormat("%.1f s", absl::ToDoubleSeconds(phases_.back().took)));
  targets_.AtMost("all back after a cut", kReturnSeconds,
                  absl::ToDoubleSeconds(phases_.back().took), "s");
  return absl::OkStatus();
}

absl::Status Campaign::KillTracker() {
  world_->Mark();
  daemons_->KillTracker();
  daemons_->StartTracker();
  RETURN_IF_ERROR(WatchReturn("new tracker"));
  Row("tracker killed and started again: all back after",
      absl::StrFormat("%.1f s", absl::ToDoubleSeconds(phases_.back().took)));
  return absl::OkStatus();
}

absl::Status Campaign::After() {
  return Watch("after", options_.after, /*may_end=*/true, [] { return false; });
}

absl::StatusOr<bool> Campaign::JobsEnded() {
  ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs, jobs_->List());
  for (const v1::Job& job : jobs) {
    if (job.state() == v1::JOB_STATE_PAUSED) {
      return absl::InternalError(
          absl::StrCat("job ", job.job_id(), " is paused: ", job.reason()));
    }
    if (!IsEnded(job.state())) return false;
  }
  return !jobs.empty();
}

absl::Status Campaign::End() {
  world_->Calm();
  absl::Status trouble;
  SteadyTime ask_at;
  const absl::Status ended = Watch("end", kEndLimit, /*may_end=*/false, [&] {
    if (clock_.Steady() < ask_at) return false;
    ask_at = clock_.Steady() + absl::Milliseconds(500);
    const auto over = JobsEnded();
    trouble = over.status();
    if (!over.ok()) return true;
    const WorldCounts counts = world_->Counts();
    return *over && counts.held == 0 && counts.spooled == 0;
  });
  RETURN_IF_ERROR(trouble);
  RETURN_IF_ERROR(ended);
  ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs, jobs_->List());
  std::map<std::string, int64_t> states;
  int64_t trials = 0;
  for (const v1::Job& job : jobs) {
    for (const v1::TaskStatus& task : job.tasks()) {
      ++states[std::string(JobStateName(task.state()))];
      trials += task.trials();
      if (options_.trials > 0 && task.trials() != options_.trials) {
        return absl::InternalError(absl::StrCat(
            "job ", job.job_id(), " counts ", task.trials(), " trials of ",
            task.workload(), ", ", options_.trials, " were asked for"));
      }
    }
  }
  std::vector<std::string> words;
  for (const auto& [state, count] : states) {
    words.push_back(absl::StrCat(count, " ", state));
  }
  Row("tasks of all jobs", absl::StrJoin(words, ", "));
  Row("candidates that the jobs count", absl::StrCat(trials));
  return absl::OkStatus();
}

absl::Status Campaign::Audit() {
  const ProcessCost tracker = CostOf(daemons_->tracker_pid());
  const ProcessCost server = CostOf(daemons_->server_pid());
  const ProcessCost boards = CostOf(getpid());
  const auto cost = [](const ProcessCost& c) {
    return absl::StrFormat("%.0f MiB at most, %d threads", Mib(c.peak_bytes),
                           c.threads);
  };
  Row("tracker", cost(tracker));
  targets_.AtMost("tracker's memory", kTrackerMib, Mib(tracker.peak_bytes),
                  "MiB");
  Row("server", cost(server));
  Row("boards (this process)", cost(boards));
  world_->Stop();
  if (!daemons_->StopServer() || !daemons_->StopTracker()) {
    return absl::InternalError("a daemon did not end as it was asked to");
  }
  std::vector<std::string> keys;
  for (int w = 0; w < options_.workloads; ++w) {
    ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(kWorkloads[w]));
    keys.push_back(workload.key);
  }
  ASSIGN_OR_RETURN(const Ledger::Audit audit,
                   world_->ledger().AuditLog(daemons_->log(), keys));
  const Ledger& ledger = world_->ledger();
  Row("trials that boards were given", absl::StrCat(ledger.assigned()));
  Row("results that boards made", absl::StrCat(ledger.finished()));
  Row("trials acknowledged to boards",
      absl::StrCat(ledger.acknowledged(), " (", ledger.repeated_acks(),
                   " more than once)"));
  Row("records in the log", absl::StrCat(audit.records, " (", audit.of_tracker,
                                         " of them the tracker's verdicts)"));
  Row("promises broken", absl::StrCat(audit.broken_count));
  if (audit.broken_count == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrJoin(audit.broken, "\n"));
}

void Campaign::PrintTable() const {
  absl::PrintF("\n%-14s %7s %8s %8s %8s  %s\n", "phase", "s", "beats/s",
               "acks/s", "cpu", "of it tracker, server, boards");
  for (const Phase& phase : phases_) {
    const double seconds = absl::ToDoubleSeconds(phase.took);
    double all = 0;
    for (const auto& [name, cpu] : phase.cpu) {
      all += std::max(0.0, absl::ToDoubleSeconds(cpu));
    }
    absl::PrintF("%-14s %7.1f %8.0f %8.0f %7.0f%%", phase.name, seconds,
                 phase.PerSecond(&WorldCounts::heartbeats),
                 phase.PerSecond(&WorldCounts::acknowledged),
                 100 * all / seconds);
    for (const auto& [name, cpu] : phase.cpu) {
      absl::PrintF("  %3.0f%%", 100 * absl::ToDoubleSeconds(cpu) / seconds);
    }
    absl::PrintF(
        "\n    heartbeats answered: %s\n    results acknowledged: %s\n",
        Times(phase.times.heartbeats), Times(phase.times.acks));
  }
  absl::PrintF("\n");
  for (const auto& [what, value] : rows_) {
    absl::PrintF("%-52s %s\n", what, value);
  }
  const WorldCounts counts = world_->Counts();
  absl::PrintF("%-52s %d, %d, %d\n",
               "connections made, agents killed, connections cut",
               counts.connects, counts.restarts, counts.cuts);
  targets_.Print();
  std::cout.flush();
}

absl::Status Campaign::Run() {
  began_ = clock_.Steady();
  RETURN_IF_ERROR(Prepare());
  world_->Start();
  absl::Status status = [this]() -> absl::Status {
    RETURN_IF_ERROR(Attach());
    RETURN_IF_ERROR(SubmitJobs());
    RETURN_IF_ERROR(Load());
    if (options_.cut_all) RETURN_IF_ERROR(CutAll());
    if (options_.kill_tracker) RETURN_IF_ERROR(KillTracker());
    RETURN_IF_ERROR(After());
    RETURN_IF_ERROR(End());
    return Audit();
  }();
  PrintTable();
  world_->Stop();
  return status;
}

}  // namespace regatta::fleet_sim
