#include "tests/chaos/campaign.h"

#include <time.h>

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace regatta::testing {
namespace {

// Jobs that follow one another when one is done before its faults are.
constexpr const char* kWorkloads[] = {
    "matmul(m=64,n=64,k=64)", "matmul(m=96,n=64,k=64)",
    "matmul(m=64,n=96,k=64)", "matmul(m=64,n=64,k=96)",
    "matmul(m=96,n=96,k=64)", "matmul(m=96,n=64,k=96)"};

constexpr absl::Duration kRound = absl::Milliseconds(50);
constexpr absl::Duration kFaultEvery = absl::Seconds(1);
constexpr absl::Duration kLineEvery = absl::Seconds(5);
constexpr absl::Duration kReadyLimit = absl::Seconds(60);
// Without any new outcome, once the faults are over: two leases and half a
// minute, and a canary before a board works again.
const absl::Duration kStillLimit = 2 * Cluster::kLease + absl::Seconds(60);
constexpr absl::Duration kRecoverLimit = absl::Minutes(20);

}  // namespace

Campaign::Campaign(Options options, Cluster* cluster)
    : options_(options),
      cluster_(cluster),
      menu_(cluster, options.disks, options.seed) {
  questions_.emplace_back(
      cluster_, absl::Seconds(3), std::vector<std::string>{"devices"},
      [this](const Json& document) { ReleaseBoards(document["devices"]); });
}

void Campaign::ReleaseBoards(const Json& devices) {
  bool held = false;
  ready_ = 0;
  for (const Json& device : devices) {
    const std::string trust = device["trust"]["state"];
    held = held || trust == "quarantined" || trust == "broken";
    ready_ += trust == "healthy" && device["presence"] == "online" ? 1 : 0;
  }
  held = held || reason_.find("stopped") != std::string::npos;
  if (!held) return;
  if (AskNow(*cluster_, {"device", "release", "--class", Cluster::kDeviceClass},
             absl::Seconds(5))
          .has_value()) {
    ++releases_;
  }
}

void Campaign::Tend() {
  cluster_->Tend();
  menu_.EndDue();
  for (Question& question : questions_) question.Tend();
  const timespec round = absl::ToTimespec(kRound);
  nanosleep(&round, nullptr);
}

bool Campaign::TendUntil(absl::Duration limit,
                         const std::function<bool()>& condition) {
  const SteadyTime start = RealClock().Steady();
  while (!condition()) {
    if (RealClock().Steady() - start > limit) return false;
    Tend();
  }
  return true;
}

void Campaign::WatchJob() {
  state_ = reason_ = "";
  trials_ = 0;
  if (questions_.size() > 1) questions_.pop_back();
  questions_.emplace_back(
      cluster_, absl::Seconds(1),
      std::vector<std::string>{"jobs", absl::StrCat(jobs_.back().job)},
      [this](const Json& job) {
        state_ = job["state"];
        reason_ = job["reason"].is_string() ? job["reason"] : Json("");
        trials_ = job["tasks"][0]["trials"];
      });
}

bool Campaign::Submit() {
  const size_t index = jobs_.size();
  if (index >= std::size(kWorkloads)) return false;
  const std::string name = absl::StrCat("chaos-", index);
  const auto known = AskNow(*cluster_, {"jobs"}, absl::Seconds(5));
  if (!known.has_value()) return false;
  std::optional<Json> job;
  for (const Json& one : (*known)["jobs"]) {
    if (one["name"] == name) job = one;
  }
  if (!job.has_value()) {
    job = AskNow(
        *cluster_,
        {"tune", kWorkloads[index], "--trials", absl::StrCat(options_.trials),
         "--seed", absl::StrCat(options_.seed), "--name", name,
         "--device-class", Cluster::kDeviceClass, "--detach"},
        absl::Seconds(5));
  }
  if (!job.has_value()) return false;
  earlier_trials_ += trials_;
  jobs_.push_back({(*job)["job"], kWorkloads[index], options_.trials});
  WatchJob();
  return true;
}

void Campaign::PrintProgress(const std::string& phase, absl::Duration left) {
  const SteadyTime now = RealClock().Steady();
  if (now < next_line_) return;
  next_line_ = now + kLineEvery;
  int64_t faults = 0;
  for (const auto& [kind, count] : menu_.done()) faults += count;
  const double seconds = absl::ToDoubleSeconds(now - started_);
  std::cout << absl::StrFormat(
                   "%6.1f s %s: %d of %d trials (job %d), %.1f a second, %d "
                   "faults, %d restarts, %d of %d boards ready",
                   seconds, phase, TrialsDone(),
                   options_.trials * static_cast<int64_t>(jobs_.size()),
                   jobs_.empty() ? 0 : jobs_.back().job,
                   static_cast<double>(TrialsDone()) / seconds, faults,
                   cluster_->restarts(), ready_, Cluster::kAgents)
            << (left > absl::ZeroDuration()
                    ? absl::StrFormat(", faults end in %.0f s",
                                      absl::ToDoubleSeconds(left))
                    : "")
            << std::endl;
}

absl::Status Campaign::Baseline() {
  started_ = RealClock().Steady();
  if (!TendUntil(kReadyLimit, [this] { return ready_ == Cluster::kAgents; })) {
    return absl::DeadlineExceededError(
        absl::StrCat("baseline: ", ready_, " of ", Cluster::kAgents,
                     " boards are ready after a minute"));
  }
  if (!TendUntil(kReadyLimit, [this] { return Submit(); }) ||
      !TendUntil(kReadyLimit, [this] { return trials_ > 0; })) {
    return absl::DeadlineExceededError("baseline: no job gets going");
  }
  return absl::OkStatus();
}

void Campaign::Faults() {
  const SteadyTime start = RealClock().Steady();
  SteadyTime next_fault = start;
  for (;;) {
    const SteadyTime now = RealClock().Steady();
    const absl::Duration left = options_.faults_for - (now - start);
    if (left <= absl::ZeroDuration()) return;
    if (now >= next_fault) {
      const std::string what = menu_.Begin();
      next_fault = next_fault + kFaultEvery;
      if (!options_.quiet) {
        std::cout << absl::StrFormat("%6.1f s ",
                                     absl::ToDoubleSeconds(now - started_))
                  << what << std::endl;
      }
    }
    if (JobEnded()) Submit();
    Tend();
    PrintProgress("faults", left);
  }
}

absl::Status Campaign::Recover() {
  const SteadyTime start = RealClock().Steady();
  menu_.EndAll();
  cluster_->StartAll();
  int64_t seen = -1;
  SteadyTime moved = start;
  while (!JobEnded()) {
    const SteadyTime now = RealClock().Steady();
    if (TrialsDone() != seen) {
      if (seen >= 0 && recovery_ == absl::ZeroDuration()) {
        recovery_ = now - start;
      }
      seen = TrialsDone();
      moved = now;
    }
    // Finalists take longer than candidates, and are not counted.
    const bool finals = trials_ >= options_.trials;
    if (now - moved > (finals ? 3 : 1) * kStillLimit ||
        now - start > kRecoverLimit) {
      return absl::DeadlineExceededError(absl::StrCat(
          "recovers: job ", jobs_.back().job, " is ", state_, " with ", trials_,
          " of ", options_.trials, " trials and has not moved for ",
          absl::FormatDuration(absl::Trunc(now - moved, absl::Seconds(1))),
          ": ", reason_));
    }
    Tend();
    PrintProgress("recovery", absl::ZeroDuration());
  }
  return absl::OkStatus();
}

}  // namespace regatta::testing
