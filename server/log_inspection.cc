#include "server/log_inspection.h"

#include <sched.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/utf8.h"

namespace regatta {

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
  std::string first;
  int64_t derived = 0;
  const auto check = log_->upkeep().Check(
      [&](const LogFinding& found) {
        derived += found.derived ? 1 : 0;
        if (found.derived || !first.empty()) return;
        first = absl::StrCat(found.where, ": ", found.what);
      },
      [this](const std::string&, int64_t, int64_t) {
        std::lock_guard lock(mutex_);
        return !stopping_;
      });
  // A file that cannot even be read through is damaged, too.
  const bool unreadable = absl::IsDataLoss(check.status());
  if (!check.ok() && !unreadable) return check.status();
  const int64_t findings = unreadable ? 1 : check->findings - derived;
  if (derived > 0) {
    LOG(kWarning) << LogEvent("best_known_differs") << derived
                  << " best-known rows are not what the records say; "
                     "`regatta log rebuild` derives them again";
  }
  {
    std::lock_guard lock(mutex_);
    ++checks_;
    findings_ = findings;
  }
  if (findings == 0) return absl::OkStatus();
  if (unreadable) first = Utf8(std::string(check.status().message()));
  if (first.empty()) first = "more than can be told";
  const absl::Status damaged = absl::DataLossError(absl::StrCat(
      "the tuning log is damaged and takes nothing more: ", first,
      findings > 1 ? absl::StrCat(" (", findings, " findings)") : "",
      "; stop the server, then: regatta log restore BACKUP --log ", path_));
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
             findings_ > 0 ? 1 : 0);
}

}  // namespace regatta
