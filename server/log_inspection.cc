#include "server/log_inspection.h"

#include <sched.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/utf8.h"

namespace regatta {
namespace {

void Warn(const LogCheck& check, const std::string& first_of_content) {
  if (check.derived > 0) {
    LOG(kWarning) << LogEvent("best_known_differs") << check.derived
                  << " best-known rows are not what the records say; "
                     "`regatta log rebuild` derives them again";
  }
  const int64_t content = check.findings - check.damage - check.derived;
  if (content > 0) {
    LOG(kWarning) << LogEvent("log_content_disagrees") << content
                  << " finding(s) in what the tuning log was given, such as "
                  << first_of_content
                  << "; `regatta log check` names them, nothing is refused for "
                     "them";
  }
}

}  // namespace

LogInspection::LogInspection(TuningLog* log, std::string path,
                             absl::Duration every)
    : log_(log), path_(std::move(path)), every_(every) {
  if (every_ > absl::ZeroDuration()) thread_ = std::thread([this] { Loop(); });
}

LogInspection::~LogInspection() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::Status LogInspection::Inspect() {
  std::string first, content;
  const auto check = log_->upkeep().Check(
      [&](const LogFinding& found) {
        if (found.kind == FindingKind::kDerived) return;
        std::string& said =
            found.kind == FindingKind::kDamage ? first : content;
        if (said.empty()) said = absl::StrCat(found.where, ": ", found.what);
      },
      [this](const std::string&, int64_t, int64_t) {
        std::lock_guard lock(mutex_);
        return !stopping_;
      });
  // A file that cannot even be read through is damaged, too.
  const bool unreadable = absl::IsDataLoss(check.status());
  if (!check.ok() && !unreadable) return check.status();
  const int64_t damage = unreadable ? 1 : check->damage;
  if (!unreadable) Warn(*check, content);
  {
    std::lock_guard lock(mutex_);
    ++checks_;
    damage_ = damage;
  }
  if (damage == 0) return absl::OkStatus();
  if (unreadable) first = Utf8(std::string(check.status().message()));
  if (first.empty()) first = "more than can be told";
  const absl::Status damaged = absl::DataLossError(
      absl::StrCat("the tuning log is damaged and takes nothing more: ", first,
                   damage > 1 ? absl::StrCat(" (", damage, " findings)") : "",
                   "; save what can be read with `regatta log export FILE`, "
                   "stop the server, "
                   "then: regatta log restore BACKUP --log ",
                   path_, " --force"));
  log_->Seal(damaged);
  return damaged;
}

void LogInspection::Loop() {
  const sched_param none = {};
  sched_setscheduler(/*pid=*/0, SCHED_IDLE, &none);
  absl::Duration wait = every_ / 24;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      stop_.wait_for(lock, absl::ToChronoNanoseconds(wait),
                     [this] { return stopping_; });
      if (stopping_) return;
    }
    const absl::Status status = Inspect();
    if (absl::IsDataLoss(status)) {
      LOG(kError) << LogEvent("log_damaged") << status.message();
      return;  // nothing of it gets better by itself
    }
    if (!status.ok() && !absl::IsCancelled(status)) {
      LOG(kWarning) << "the tuning log was not checked: " << status.message();
    }
    wait = every_;
  }
}

void LogInspection::Collect(MetricsPage& page) const {
  std::lock_guard lock(mutex_);
  page.Counter("regatta_server_log_checks_total",
               "Checks of the whole tuning log that came to an end",
               static_cast<double>(checks_));
  page.Gauge("regatta_server_log_damaged",
             "Whether the last one found damage, so that nothing more is "
             "stored: 1 or 0",
             damage_ > 0 ? 1 : 0);
}

}  // namespace regatta
