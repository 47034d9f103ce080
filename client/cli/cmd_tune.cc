#include <unistd.h>

#include <iostream>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "client/cli/asker.h"
#include "client/cli/commands.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/job_report.h"
#include "client/cli/jobs_file.h"
#include "client/cli/progress.h"
#include "client/cli/server_client.h"
#include "client/cli/stop_signal.h"
#include "compiler/ops/op.h"
#include "proto/outcome_names.h"
#include "server/search/search_strategy.h"

namespace regatta::cli {
namespace {

// How long a server that is being restarted is waited for.
constexpr absl::Duration kServerPatience = absl::Seconds(60);

struct Flags {
  ServerFlags server;
  PolicyFlags policy;
  std::string workload;
  CLI::Option* workload_option = nullptr;
  std::string file;
  CLI::Option* file_option = nullptr;
  int64_t trials = 0;
  double minutes = 0;
  double until_gain = 0;
  double weight = 1;
  std::vector<std::string> classes;
  std::string strategy;
  uint64_t seed = 0;
  CLI::Option* seed_option = nullptr;
  bool fresh = false;
  std::string name;
  int priority = 0;
  double deadline = 0;
  bool detach = false;
  bool json = false;
};

absl::StatusOr<v1::SubmitJobRequest> RequestOfFlags(const Flags& flags) {
  ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(flags.workload));
  v1::SubmitJobRequest request;
  request.set_name(flags.name);
  v1::TaskRequest* task = request.add_tasks();
  task->set_workload(workload.text);
  std::set<std::string> seen;
  for (const std::string& c : flags.classes) {
    if (!seen.insert(c).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--device-class ", c, " is given twice"));
    }
    task->add_device_classes(c);
  }
  *task->mutable_policy() = flags.policy.ToProto();
  task->set_trials(flags.trials);
  task->set_minutes(flags.minutes);
  task->set_until_gain_percent(flags.until_gain);
  request.set_strategy(flags.strategy);
  request.set_has_seed(flags.seed_option->count() > 0);
  request.set_seed(flags.seed);
  request.set_priority(flags.priority);
  request.set_deadline_minutes(flags.deadline);
  request.set_fresh(flags.fresh);
  request.set_weight(flags.weight);
  return request;
}

absl::StatusOr<v1::SubmitJobRequest> Request(const Flags& flags) {
  const bool from_file = flags.file_option->count() > 0;
  if (!from_file && flags.workload_option->count() == 0) {
    return absl::InvalidArgumentError(
        "a workload is required, or --file with several");
  }
  auto request = from_file ? ReadJobsFile(flags.file) : RequestOfFlags(flags);
  RETURN_IF_ERROR(request.status());
  request->set_user(AskerName());
  // Sent again after a lost answer, it is the same job.
  request->set_request_id(absl::StrCat(getpid(), "-", RealClock().Steady().ns,
                                       "-",
                                       absl::ToUnixNanos(RealClock().Wall())));
  return request;
}

void Announce(const v1::Job& job) {
  std::cerr << "Job " << job.job_id() << ": seed " << job.seed()
            << ", strategy " << job.strategy()
            << (job.fresh() ? ", the log is not used (--fresh)" : "") << "\n";
}

// Says once per task what the log contributed, as soon as that is known: the
// first trial is sent after the log was read.
class ReuseNotes {
 public:
  void Update(const v1::Job& job, ProgressDisplay& progress) {
    said_.resize(job.tasks_size());
    for (int i = 0; i < job.tasks_size(); ++i) {
      const v1::TaskStatus& task = job.tasks(i);
      if (job.fresh() || said_[i]) continue;
      if (task.reused() == 0 && task.outcomes().empty()) continue;
      said_[i] = true;
      progress.Note(absl::StrCat(
          task.workload(), " on ", task.device_class(), ": ",
          task.reused() > 0
              ? absl::StrCat("starts from the log, ", task.reused(),
                             " measured before, not repeated")
              : "the log had nothing on it yet"));
    }
  }

 private:
  std::vector<bool> said_;
};

int Watch(ServerClient& client, const v1::Job& submitted, const Flags& flags) {
  ProgressDisplay progress(!flags.json, StderrIsTerminal(), RealClock());
  ReuseNotes reuse;
  v1::Job last = submitted;
  const absl::Status status =
      client.WatchJob(submitted.job_id(), StopRequested(), kServerPatience,
                      [&](const v1::Job& job) {
                        last = job;
                        reuse.Update(job, progress);
                        progress.Update(job);
                        return job.state() != v1::JOB_STATE_PAUSED;
                      });
  progress.Finish();
  if (absl::IsCancelled(status)) {
    std::cerr << "Detached; job " << last.job_id()
              << " goes on. Watch it with `regatta jobs " << last.job_id()
              << " --watch`, end it with `regatta cancel " << last.job_id()
              << "`.\n";
    if (flags.json) PrintJson(JobDocument(last));
    return kExitDone;
  }
  if (!status.ok()) {
    return Fail(absl::Status(
        status.code(),
        absl::StrCat("watching job ", last.job_id(), ": ", status.message(),
                     ". The job itself goes on")));
  }
  if (flags.json) {
    PrintJson(JobDocument(last));
  } else {
    std::cout << JobReport(last);
  }
  return JobExitCode(last);
}

// A refusal by the server, with the place in the file that it is about.
absl::Status Refusal(const Flags& flags, const v1::SubmitJobRequest& request,
                     const absl::Status& status) {
  if (flags.file_option->count() == 0 || absl::IsUnavailable(status) ||
      absl::IsDeadlineExceeded(status)) {
    return status;
  }
  // The server names the task of several only.
  return Annotate(status, request.tasks_size() == 1
                              ? absl::StrCat(flags.file, ": tasks[0]")
                              : flags.file);
}

int Run(const Flags& flags) {
  const auto request = Request(flags);
  if (!request.ok()) return Fail(request.status());
  auto client = ConnectServer(flags.server);
  if (!client.ok()) return Fail(client.status());
  StopRequested();
  auto job = (*client)->SubmitJob(*request);
  if (absl::IsDeadlineExceeded(job.status()) ||
      absl::IsUnavailable(job.status())) {
    // The answer may have been lost on its way: the same id is the same job.
    job = (*client)->SubmitJob(*request);
  }
  if (!job.ok()) return Fail(Refusal(flags, *request, job.status()));
  if (flags.detach) {
    if (flags.json) {
      PrintJson(JobDocument(*job));
    } else {
      std::cout << "Job " << job->job_id() << " submitted.\n";
    }
    return kExitDone;
  }
  if (!flags.json) Announce(*job);
  return Watch(**client, *job, flags);
}

}  // namespace

AddedCommand AddTune(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "tune", "Search for the fastest schedule of a workload on boards");
  flags->workload_option =
      AddWorkloadArgument(command, &flags->workload)->required(false);
  CLI::Option* file = command
                          ->add_option("--file", flags->file,
                                       "JSON document with a job of several "
                                       "tasks, instead of a workload and the "
                                       "flags that describe it")
                          ->check(Utf8Text())
                          ->excludes(flags->workload_option);
  CLI::Option* trials = AddWholeNumber(
      command, "--trials", &flags->trials, int64_t{1}, int64_t{1'000'000},
      "New candidates per device class (count). Default: 200, unless "
      "--minutes is given");
  AddNumber(command, "--minutes", &flags->minutes, 0.01, 1e5,
            "Wall time to search for, instead of --trials (minutes)")
      ->excludes(trials);
  AddNumber(command, "--until-gain", &flags->until_gain, 0.1, 1e5,
            "End once the best is confirmed to be this much faster than the "
            "default (per cent); --trials or --minutes bound it still");
  AddNumber(command, "--weight", &flags->weight, 0.001, 1000,
            "Share of the boards' time among jobs of one priority")
      ->default_str("1");
  command
      ->add_option("--device-class", flags->classes,
                   "Class of boards to tune on; may be given several times. "
                   "Default: every registered real class")
      ->check(Utf8Text())
      // One a flag: what follows may be the workload.
      ->allow_extra_args(false);
  AddPolicyFlags(command, &flags->policy);
  std::vector<std::string> names;
  for (const StrategyInfo& info : SearchStrategies()) {
    names.emplace_back(info.name);
  }
  flags->strategy = names.front();
  command
      ->add_option("--strategy", flags->strategy, "How candidates are chosen")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  flags->seed_option = AddWholeNumber(
      command, "--seed", &flags->seed, uint64_t{0},
      std::numeric_limits<uint64_t>::max(),
      "Seed of the search. Default: drawn by the server, and recorded");
  command->add_flag("--fresh", flags->fresh,
                    "Use no log for seeds, dedupe or model");
  command->add_option("--name", flags->name, "A name for people. Default: none")
      ->check(Utf8Text());
  AddNumber(command, "--deadline-minutes", &flags->deadline, 0.01, 1e5,
            "Wanted within so many minutes: goes before your other jobs");
  AddWholeNumber(command, "--priority", &flags->priority, -100, 100,
                 "Higher goes first; -100 to 100")
      ->default_str("0");
  command->add_flag("--detach", flags->detach,
                    "Submit and return; watch with `regatta jobs`");
  flags->file_option = file;
  // What the file says itself.
  for (CLI::Option* option : command->get_options()) {
    if (option != file && option->get_name() != "--help" &&
        option->get_name() != "--detach") {
      file->excludes(option);
    }
  }
  AddServerFlag(command, &flags->server);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli
