#include "server/job/finals.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "proto/block_time.h"

namespace regatta {
namespace {

bool Ok(const v1::TrialResult* result) {
  return result != nullptr && result->outcome() == v1::OUTCOME_OK &&
         result->time_ns() > 0;
}

bool Beats(const v1::TrialResult& standing, const v1::TrialResult& challenger,
           double threshold) {
  const auto comparison = Compare(standing, challenger);
  return comparison && comparison->rounds >= kMinRounds &&
         comparison->ratio.low > threshold;
}

std::string Describe(const char* against, const Comparison& comparison) {
  return absl::StrFormat(
      "no schedule was faster than the %s with confidence; the fastest found "
      "is %.3fx as fast (95 %% interval %.3f to %.3f, %d rounds)",
      against, comparison.ratio.ratio, comparison.ratio.low,
      comparison.ratio.high, comparison.rounds);
}

void FillTimes(ConfirmVerdict* verdict) {
  std::vector<double> times;
  for (const auto& time : RoundTimes(*verdict->winner)) {
    if (time) times.push_back(*time);
  }
  verdict->time_ns = verdict->winner->time_ns();
  verdict->time = {verdict->time_ns, verdict->time_ns};
  if (!times.empty()) verdict->time = MedianInterval95(times);
}

}  // namespace

UsedNoiseFloor UsableNoiseFloor(std::optional<double> measured) {
  const auto unknown = [](const std::string& why) {
    return UsedNoiseFloor{
        kAssumedNoiseFloor,
        absl::StrFormat("the board's noise floor %s; %.0f %% is assumed", why,
                        100 * kAssumedNoiseFloor)};
  };
  if (!measured) return unknown("was not measured");
  if (!(*measured >= 0)) return unknown("is no number");
  if (*measured > kLargestNoiseFloor) {
    return unknown(absl::StrFormat(
        "was measured as %.0f %%, which is no floor (above %.0f %%)",
        100 * *measured, 100 * kLargestNoiseFloor));
  }
  return {*measured, ""};
}

std::vector<std::string> FastestSchedules(const TaskResults& results, int limit,
                                          const std::string& except) {
  std::vector<const TaskResults::Entry*> entries;
  std::set<std::string> seen;  // code that is in already
  for (const TaskResults::Entry& entry : results.schedules()) {
    const bool excluded =
        entry.first == results.default_schedule() || entry.first == except;
    if (excluded) {
      seen.insert(entry.second.binary_hash);
    } else if (entry.second.usable() && !entry.second.abandoned) {
      entries.push_back(&entry);
    }
  }
  seen.erase("");
  std::sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
    return std::tie(a->second.time_ns, a->first) <
           std::tie(b->second.time_ns, b->first);
  });
  std::vector<std::string> fastest;
  for (const TaskResults::Entry* entry : entries) {
    const std::string& hash = entry->second.binary_hash;
    if (!hash.empty() && !seen.insert(hash).second) continue;
    fastest.push_back(entry->first);
    if (static_cast<int>(fastest.size()) == limit) break;
  }
  return fastest;
}

std::vector<std::optional<double>> RoundTimes(const v1::TrialResult& result) {
  std::vector<std::optional<double>> times;
  for (const v1::Block& block : result.blocks()) {
    if (block.throttled() || block.calls() <= 0 || block.elapsed_ns() <= 0) {
      times.emplace_back();
    } else {
      times.emplace_back(NsPerCall(block));
    }
  }
  return times;
}

std::optional<Comparison> Compare(const v1::TrialResult& a,
                                  const v1::TrialResult& b) {
  const auto a_times = RoundTimes(a);
  const auto b_times = RoundTimes(b);
  std::vector<double> a_kept, b_kept;
  for (size_t i = 0; i < std::min(a_times.size(), b_times.size()); ++i) {
    if (!a_times[i] || !b_times[i]) continue;
    a_kept.push_back(*a_times[i]);
    b_kept.push_back(*b_times[i]);
  }
  if (a_kept.empty()) return std::nullopt;
  return Comparison{PairedRatio(a_kept, b_kept),
                    static_cast<int>(a_kept.size())};
}

ConfirmVerdict Judge(const Confirmation& confirmation) {
  CHECK(Ok(confirmation.default_result)) << "no default to compare with";
  const v1::TrialResult& base = *confirmation.default_result;
  const double threshold = 1 + std::max(0.01, 2 * confirmation.noise_floor);

  const v1::TrialResult* standing = &base;
  if (Ok(confirmation.incumbent)) {
    const auto comparison = Compare(base, *confirmation.incumbent);
    if (comparison && comparison->ratio.ratio > 1) {
      standing = confirmation.incumbent;
    }
  }
  const v1::TrialResult* leader = nullptr;
  for (const v1::TrialResult* finalist : confirmation.finalists) {
    if (!Ok(finalist)) continue;
    if (leader == nullptr || finalist->time_ns() < leader->time_ns()) {
      leader = finalist;
    }
  }
  ConfirmVerdict verdict;
  verdict.winner = standing;
  verdict.default_ns = base.time_ns();
  if (leader != nullptr && Beats(*standing, *leader, threshold) &&
      Beats(base, *leader, threshold)) {
    verdict.winner = leader;
  } else if (leader != nullptr) {
    const bool incumbent = standing != &base;
    if (const auto comparison = Compare(*standing, *leader)) {
      verdict.reason =
          Describe(incumbent ? "best known before" : "default", *comparison);
    }
  } else if (!confirmation.finalists.empty()) {
    verdict.reason = "no finalist was verified again in the confirmation";
  }
  FillTimes(&verdict);
  if (verdict.winner != &base) {
    if (const auto comparison = Compare(base, *verdict.winner)) {
      verdict.speedup = comparison->ratio;
    }
  }
  return verdict;
}

}  // namespace regatta
