#include "client/cli/job_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/one_line.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

std::string Outcomes(const v1::TaskStatus& task) {
  std::vector<std::string> parts;
  for (int i = v1::OUTCOME_OK; i <= v1::OUTCOME_CANCELLED; ++i) {
    const std::string name = OutcomeName(static_cast<v1::Outcome>(i));
    const auto it = task.outcomes().find(name);
    if (it != task.outcomes().end() && it->second > 0) {
      parts.push_back(absl::StrCat(it->second, " ", name));
    }
  }
  return parts.empty() ? "none" : absl::StrJoin(parts, ", ");
}

std::string EndedBy(const v1::TaskStatus& task) {
  if (task.ended_by() == "trials") {
    return absl::StrCat("its bound of ", task.budget_trials(), " trials");
  }
  if (task.ended_by() == "minutes") {
    return absl::StrCat("its bound of ", task.budget_minutes(), " minutes");
  }
  if (task.ended_by() == "until_gain") {
    return absl::StrCat("a confirmed gain of ", task.until_gain_percent(),
                        " % or more");
  }
  return "the end of the space: there is nothing left to try";
}

// What the best-known time rests on.
std::string Standing(const v1::TaskStatus& task) {
  if (!task.confirmed()) return "";
  return task.best_ns() == task.default_ns()
             ? ", the default: nothing beat it with confidence"
             : ", confirmed against the default";
}

std::string TaskReport(const v1::TaskStatus& task) {
  std::string text =
      absl::StrCat(task.workload(), " on ", task.device_class(), ", ",
                   task.policy().threads(),
                   task.policy().threads() == 1 ? " thread, " : " threads, ",
                   CacheStateName(task.policy().cache()),
                   " cache: ", JobStateName(task.state()), "\n");
  auto line = [&text](const std::string& label, const std::string& value) {
    absl::StrAppend(&text, "  ", label, std::string(12 - label.size(), ' '),
                    value, "\n");
  };
  if (!task.reason().empty()) line("reason", OneLine(task.reason()));
  line("default", absl::StrCat(FormatNs(task.default_ns()), "  ",
                               FormatAchieved(task, task.default_ns())));
  line("tuned",
       absl::StrCat(FormatNs(task.best_ns()), "  ",
                    FormatAchieved(task, task.best_ns()), Standing(task)));
  line("speed-up",
       FormatSpeedup(task.speedup(), task.speedup_low(), task.speedup_high()));
  line("schedule", task.schedule().empty() ? "none" : task.schedule());
  line("trials", absl::StrCat(task.trials(),
                              " new candidates; records: ", Outcomes(task)));
  if (!task.ended_by().empty()) line("ended by", EndedBy(task));
  if (task.device_ns() > 0) line("device", FormatNs(task.device_ns()));
  if (task.reused() > 0) {
    line("log", absl::StrCat(task.reused(), " measured before, not repeated"));
  }
  if (task.times().time_ns() > 0) {
    line("a trial",
         absl::StrCat("build ", FormatNs(task.times().build_ns()), ", wait ",
                      FormatNs(task.times().wait_ns()), ", verify ",
                      FormatNs(task.times().verify_ns()), ", time ",
                      FormatNs(task.times().time_ns()), ", record ",
                      FormatNs(task.times().record_ns()), " (medians)"));
  }
  return text;
}

}  // namespace

std::string JobReport(const v1::Job& job) {
  std::string text =
      absl::StrCat("Job ", job.job_id(), job.name().empty() ? "" : " ",
                   OneLine(job.name()), ": ", JobStateName(job.state()));
  // A single task says its reason itself.
  const bool said =
      job.tasks_size() == 1 && job.tasks(0).reason() == job.reason();
  if (!job.reason().empty() && !said) {
    absl::StrAppend(&text, " (", OneLine(job.reason()), ")");
  }
  absl::StrAppend(&text, "; strategy ", job.strategy(), ", seed ", job.seed(),
                  job.fresh() ? ", log not used" : "", "\n");
  for (const v1::TaskStatus& task : job.tasks()) {
    absl::StrAppend(&text, TaskReport(task));
  }
  return text;
}

int JobExitCode(const v1::Job& job) {
  switch (job.state()) {
    case v1::JOB_STATE_FAILED:
    case v1::JOB_STATE_CANCELLED:
    case v1::JOB_STATE_PAUSED:
      return kExitFailed;
    default:
      return kExitDone;
  }
}

}  // namespace regatta::cli
