#include <unistd.h>

#include <iostream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "client/cli/commands.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/job_report.h"
#include "client/cli/progress.h"
#include "client/cli/server_client.h"
#include "client/cli/stop_signal.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

constexpr int64_t kLargestId = std::numeric_limits<int64_t>::max();

struct JobsFlags {
  ServerFlags server;
  int64_t job_id = 0;
  CLI::Option* job_option = nullptr;
  bool watch = false;
  bool json = false;
};

int ListAll(ServerClient& client, const JobsFlags& flags) {
  auto response = client.ListJobs();
  if (!response.ok()) return Fail(response.status());
  if (flags.json) {
    Json jobs = Json::array();
    for (const v1::Job& job : response->jobs())
      jobs.push_back(JobDocument(job));
    PrintJson({{"jobs", jobs}});
    return kExitDone;
  }
  if (response->jobs().empty()) {
    std::cout << "No jobs yet. Start one: regatta tune "
                 "'matmul(m=512,n=512,k=512)'\n";
    return kExitDone;
  }
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "STATE", "TRIALS", "SPEED-UP", "WORKLOAD", "CLASS", "NAME"}};
  for (const v1::Job& job : response->jobs()) {
    for (const v1::TaskStatus& task : job.tasks()) {
      rows.push_back(
          {absl::StrCat(job.job_id()), JobStateName(task.state()),
           task.budget_trials() > 0
               ? absl::StrCat(task.trials(), "/", task.budget_trials())
               : absl::StrCat(task.trials()),
           task.speedup() > 0 ? absl::StrFormat("%.2fx", task.speedup()) : "-",
           task.workload(), task.device_class(), job.name()});
    }
  }
  if (isatty(STDOUT_FILENO) == 1) {
    constexpr size_t kWorkload = 4;
    FitColumn(&rows, kWorkload, SizeOfTerminal(STDOUT_FILENO).columns);
  }
  std::cout << FormatTable(std::move(rows));
  return kExitDone;
}

int ShowOne(ServerClient& client, const JobsFlags& flags) {
  auto job = client.GetJob(flags.job_id);
  if (!job.ok()) return Fail(job.status());
  if (flags.watch && !IsEnded(job->state())) {
    ProgressDisplay progress(!flags.json, StderrIsTerminal(), RealClock());
    const absl::Status status =
        client.WatchJob(flags.job_id, StopRequested(), absl::Seconds(60),
                        [&](const v1::Job& update) {
                          *job = update;
                          progress.Update(update);
                          return update.state() != v1::JOB_STATE_PAUSED;
                        });
    progress.Finish();
    if (!status.ok() && !absl::IsCancelled(status)) return Fail(status);
  }
  if (flags.json) {
    PrintJson(JobDocument(*job));
  } else {
    std::cout << JobReport(*job);
  }
  return JobExitCode(*job);
}

int RunJobs(const JobsFlags& flags) {
  auto client = ConnectServer(flags.server);
  if (!client.ok()) return Fail(client.status());
  if (flags.job_option->count() > 0) return ShowOne(**client, flags);
  if (flags.watch) {
    return Fail(absl::InvalidArgumentError(
        "--watch needs a job: regatta jobs ID --watch"));
  }
  return ListAll(**client, flags);
}

// Of `cancel` and `resume`.
struct OneJobFlags {
  ServerFlags server;
  int64_t job_id = 0;
  bool json = false;
};

int RunResume(const OneJobFlags& flags) {
  auto client = ConnectServer(flags.server);
  if (!client.ok()) return Fail(client.status());
  auto job = (*client)->ResumeJob(flags.job_id);
  if (!job.ok()) return Fail(job.status());
  if (flags.json) {
    PrintJson(JobDocument(*job));
  } else {
    std::cout << "Job " << job->job_id() << " goes on; it is "
              << JobStateName(job->state()) << ". Watch it with `regatta jobs "
              << job->job_id() << " --watch`.\n";
  }
  return kExitDone;
}

int RunCancel(const OneJobFlags& flags) {
  auto client = ConnectServer(flags.server);
  if (!client.ok()) return Fail(client.status());
  auto job = (*client)->CancelJob(flags.job_id);
  if (!job.ok()) return Fail(job.status());
  if (flags.json) {
    PrintJson(JobDocument(*job));
  } else {
    std::cout << "Job " << job->job_id() << " is " << JobStateName(job->state())
              << ".\n";
  }
  return kExitDone;
}

}  // namespace

AddedCommand AddJobs(CLI::App& app) {
  auto flags = std::make_shared<JobsFlags>();
  CLI::App* command = app.add_subcommand("jobs", "Jobs, or one job whole");
  flags->job_option = AddWholeNumber(command, "id", &flags->job_id, int64_t{1},
                                     kLargestId, "Job to show. Default: all");
  command->add_flag("--watch", flags->watch,
                    "Follow the job's progress until it ends");
  AddServerFlag(command, &flags->server);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return RunJobs(*flags); }};
}

AddedCommand AddOneJobCommand(CLI::App& app, const char* name, const char* help,
                              const char* job_help,
                              int (*run)(const OneJobFlags&)) {
  auto flags = std::make_shared<OneJobFlags>();
  CLI::App* command = app.add_subcommand(name, help);
  AddWholeNumber(command, "id", &flags->job_id, int64_t{1}, kLargestId,
                 job_help)
      ->required();
  AddServerFlag(command, &flags->server);
  AddJsonFlag(command, &flags->json);
  return {command, [flags, run] { return run(*flags); }};
}

AddedCommand AddCancel(CLI::App& app) {
  return AddOneJobCommand(app, "cancel", "End a job", "Job to end", RunCancel);
}

AddedCommand AddResume(CLI::App& app) {
  return AddOneJobCommand(
      app, "resume",
      "Let paused tasks of a job go on, once the cause is mended",
      "Job to go on with", RunResume);
}

}  // namespace regatta::cli
