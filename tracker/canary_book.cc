#include "tracker/canary_book.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/device_health.h"
#include "proto/outcome_names.h"

namespace regatta {
namespace {

MatchKey KeyOf(const v1::Canary& canary) {
  return {canary.trial().device_class(), canary.trial().compiler_version(),
          canary.trial().schedule().space(),
          canary.trial().schedule().space_version()};
}

// A kernel's times compare only with its own: the name, what is computed, how,
// and what built it.
std::string Kernel(const v1::TrialSpec& spec) {
  return absl::StrCat(spec.workload(), " | ", spec.schedule().text(), " | ",
                      spec.compiler_version());
}

// The fastest undisturbed block's time per call: the load of others makes
// blocks slower, never faster. 0: none.
int64_t FastestNs(const v1::TrialResult& result) {
  int64_t fastest = std::numeric_limits<int64_t>::max();
  for (const v1::Block& block : result.blocks()) {
    if (block.throttled() || block.calls() <= 0) continue;
    fastest = std::min(fastest, block.elapsed_ns() / block.calls());
  }
  return fastest == std::numeric_limits<int64_t>::max() ? result.time_ns()
                                                        : fastest;
}

// Processors that were busy with something else during the run, as the board's
// sensor says; 0 where it has none.
double OthersBusy(const v1::TrialResult& result) {
  const int own = std::max(1, result.spec().policy().threads());
  for (const v1::SensorReading& reading : result.environment().sensors()) {
    if (reading.name() == "busy_processors") {
      return std::max(0.0, reading.after() - own);
    }
  }
  return 0;
}

double Slack(const v1::DeviceInfo& info) {
  const double slack =
      IsHealthOk(info.health()) ? kCanarySlack : kCanarySlackUncontrolled;
  return info.has_noise_floor() ? std::max(slack, info.noise_floor()) : slack;
}

v1::CanaryTimes& TimesOf(const std::string& kernel,
                         v1::DeviceStanding* standing) {
  for (v1::CanaryTimes& times : *standing->mutable_canary_times()) {
    if (times.kernel() == kernel) return times;
  }
  // Kernels of earlier compilers will not come again.
  if (standing->canary_times_size() >= 2 * CanaryBook::kMaxPerKind) {
    standing->mutable_canary_times()->DeleteSubrange(0, 1);
  }
  v1::CanaryTimes& times = *standing->add_canary_times();
  times.set_kernel(kernel);
  return times;
}

int64_t Median(const v1::CanaryTimes& times) {
  std::vector<int64_t> sorted(times.ns().begin(), times.ns().end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

}  // namespace

absl::Status CanaryBook::Check(const v1::Canaries& canaries) {
  for (const v1::Canary& canary : canaries.canaries()) {
    const v1::TrialSpec& trial = canary.trial();
    if (canary.name().empty() || trial.workload().empty() ||
        trial.device_class().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("canary '", canary.name(),
                       "' must have a name, a workload and a "
                       "device class"));
    }
    if (trial.ByteSizeLong() > (64 << 10)) {
      return absl::InvalidArgumentError(
          absl::StrCat("canary ", canary.name(), " has ", trial.ByteSizeLong(),
                       " bytes, at most 65536 are allowed"));
    }
  }
  return absl::OkStatus();
}

void CanaryBook::Offer(const v1::Canaries& canaries) {
  std::map<MatchKey, std::vector<v1::Canary>> offered;
  for (const v1::Canary& canary : canaries.canaries()) {
    std::vector<v1::Canary>& list = offered[KeyOf(canary)];
    if (std::ssize(list) < kMaxPerClass) list.push_back(canary);
  }
  for (auto& [key, list] : offered) {
    if (kinds_.size() >= kMaxKinds && !kinds_.contains(key)) continue;
    kinds_[key] = std::move(list);
  }
}

bool CanaryBook::Has(const MatchKey& key, const v1::DeviceInfo& info) const {
  const auto kind = kinds_.find(key);
  return kind != kinds_.end() &&
         std::any_of(kind->second.begin(), kind->second.end(),
                     [&](const v1::Canary& canary) {
                       return canary.trial().target() == info.target();
                     });
}

std::vector<v1::TrialSpec> CanaryBook::Round(
    const MatchKey& key, const v1::DeviceInfo& info,
    std::string_view assignment_id) const {
  std::vector<v1::TrialSpec> trials;
  const auto kind = kinds_.find(key);
  if (kind == kinds_.end()) return trials;
  for (const v1::Canary& canary : kind->second) {
    if (canary.trial().target() != info.target()) continue;
    if (std::ssize(trials) == kMaxPerKind) break;
    v1::TrialSpec& trial = trials.emplace_back(canary.trial());
    trial.set_trial_id(
        absl::StrCat(std::string(assignment_id), "/", canary.name()));
    trial.set_kind(v1::TRIAL_KIND_CANARY);
    trial.set_incumbent_ns(0);
  }
  return trials;
}

CanaryJudgement JudgeCanary(const v1::TrialResult& result,
                            const v1::DeviceInfo& info,
                            v1::DeviceStanding* standing) {
  const std::string& id = result.spec().trial_id();
  const std::string name = id.substr(id.rfind('/') + 1);
  const auto say = [&](CanaryVerdict verdict, const std::string& what) {
    return CanaryJudgement{verdict, absl::StrCat("canary ", name, ": ", what)};
  };
  const auto slow = [&](const std::string& what) {
    const double others = OthersBusy(result);
    if (others <= kCanaryOthersBusy) return say(CanaryVerdict::kSlow, what);
    return say(CanaryVerdict::kDisturbed,
               absl::StrFormat("%s, while %.1f processors were busy with "
                               "something else",
                               what, others));
  };
  switch (result.outcome()) {
    case v1::OUTCOME_OK:
      break;
    // The software's doing, or nobody's.
    case v1::OUTCOME_COMPILE_ERROR:
    case v1::OUTCOME_REFUSED:
    case v1::OUTCOME_DUPLICATE_BINARY:
    case v1::OUTCOME_CANCELLED:
    case v1::OUTCOME_AGENT_LOST:
      return say(
          CanaryVerdict::kVoid,
          absl::StrCat(OutcomeName(result.outcome()), ": ", result.detail()));
    case v1::OUTCOME_THROTTLED:
      return slow("throttled");
    default:
      return say(
          CanaryVerdict::kFailed,
          absl::StrCat(OutcomeName(result.outcome()), ": ", result.detail()));
  }
  const int64_t ns = FastestNs(result);
  if (ns <= 0) return say(CanaryVerdict::kFailed, "no time was taken");
  v1::CanaryTimes& times = TimesOf(Kernel(result.spec()), standing);
  if (times.ns_size() >= kCanaryBaseline) {
    const double ratio = static_cast<double>(ns) / Median(times);
    if (ratio > 1 + Slack(info)) {
      return slow(absl::StrFormat(
          "%.1f %% slower than the board's median, %.1f %% are allowed",
          (ratio - 1) * 100, Slack(info) * 100));
    }
  }
  times.add_ns(ns);
  if (times.ns_size() > kCanaryTimes) {
    times.mutable_ns()->erase(times.ns().begin());
  }
  return {};
}

void ForgetCanaryTimes(v1::DeviceStanding* standing) {
  standing->clear_canary_times();
}

}  // namespace regatta
