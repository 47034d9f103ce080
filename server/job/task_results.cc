#include "server/job/task_results.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/device_time.h"
#include "proto/outcome_names.h"

namespace regatta {
namespace {

constexpr absl::Duration kRateWindow = absl::Seconds(20);
// Enough for a steady median, little enough for a million trials.
constexpr size_t kKeptTimes = 1024;

// Numbers (element indices, sizes, values) differ between failures of one
// cause; the words around them do not.
std::string ErrorShape(const v1::TrialResult& result) {
  std::string shape = OutcomeName(result.outcome());
  shape += ':';
  for (const char c : result.detail()) {
    if (!absl::ascii_isdigit(c)) {
      shape += c;
    } else if (shape.back() != '#') {
      shape += '#';
    }
  }
  return shape;
}

int64_t MedianOf(const std::deque<v1::TrialTimes>& times,
                 int64_t (v1::TrialTimes::*field)() const) {
  std::vector<int64_t> values;
  for (const v1::TrialTimes& t : times) {
    // 0: that phase was never reached or is not known.
    if ((t.*field)() > 0) values.push_back((t.*field)());
  }
  if (values.empty()) return 0;
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool IsFailure(const v1::TrialResult& result) {
  return IsCandidateOutcome(result.outcome()) &&
         result.outcome() != v1::OUTCOME_OK &&
         result.outcome() != v1::OUTCOME_DUPLICATE_BINARY;
}

}  // namespace

std::string OutcomeText(const v1::TrialResult& result) {
  const std::string name = OutcomeName(result.outcome());
  return result.detail().empty() ? name
                                 : absl::StrCat(name, ": ", result.detail());
}

void TaskResults::Learn(const v1::TrialResult& result, bool from_log) {
  if (!IsCandidateOutcome(result.outcome())) return;
  Entry& entry = *schedules_.try_emplace(result.spec().schedule().text()).first;
  ScheduleFacts& facts = entry.second;
  (from_log ? facts.from_log : facts.tried) = true;
  const std::string& hash = result.binary_hash();
  if (!hash.empty()) facts.binary_hash = hash;
  if (IsFailure(result)) facts.failed = true;
  int64_t time_ns = result.time_ns();
  if (result.outcome() == v1::OUTCOME_DUPLICATE_BINARY) {
    // The same code as an earlier trial's, so that one's time holds here.
    const auto known = hash_times_.find(hash);
    if (known != hash_times_.end()) time_ns = known->second;
  }
  if (!IsFailure(result) && time_ns > 0) {
    // A lower bound never takes the place of a full time.
    if (!facts.ok || facts.abandoned || !result.abandoned()) {
      facts.abandoned = result.abandoned();
      facts.time_ns = time_ns;
    }
    facts.ok = true;
    if (!result.abandoned() && !hash.empty()) hash_times_[hash] = time_ns;
  }
  UpdateBest(entry);
}

void TaskResults::UpdateBest(const Entry& changed) {
  const auto better = [](const Entry& a, const Entry* b) {
    return a.second.usable() && !a.second.abandoned &&
           (b == nullptr || a.second.time_ns < b->second.time_ns);
  };
  if (best_ != &changed) {
    if (better(changed, best_)) best_ = &changed;
    return;
  }
  best_ = nullptr;
  for (const Entry& entry : schedules_) {
    if (better(entry, best_)) best_ = &entry;
  }
}

void TaskResults::Disprove(const std::string& schedule) {
  Entry& entry = *schedules_.try_emplace(schedule).first;
  entry.second.failed = true;
  UpdateBest(entry);
}

void TaskResults::AddFromLog(const v1::TrialResult& result) {
  Learn(result, /*from_log=*/true);
}

void TaskResults::Add(const v1::TrialResult& result,
                      const std::optional<Passage>& passage, bool wanted,
                      bool forgiven) {
  ++outcomes_[OutcomeName(result.outcome())];
  device_ns_ += DeviceNs(result);
  if (!IsCandidateOutcome(result.outcome())) {
    if (forgiven) return;
    if (wanted) ++infrastructure_streak_;
    last_infrastructure_ = OutcomeText(result);
    return;
  }
  infrastructure_streak_ = 0;
  const bool candidate = result.spec().kind() == v1::TRIAL_KIND_CANDIDATE;
  if (candidate) CountCandidate(result, passage);
  // A wrong kernel stays one, whatever was mended.
  const bool forgotten = forgiven && IsFailure(result) &&
                         result.outcome() != v1::OUTCOME_WRONG_RESULT;
  const bool current = result.spec().compiler_version() == compiler_version_;
  if (current && !forgotten) Learn(result, /*from_log=*/false);
  if (current && result.spec().kind() == v1::TRIAL_KIND_DEFAULT) {
    default_schedule_ = result.spec().schedule().text();
    if (result.outcome() == v1::OUTCOME_OK) {
      default_ns_ = result.time_ns();
    } else if (!forgiven) {
      default_failure_ = OutcomeText(result);
    }
  }
  if (candidate && !forgiven) JudgeCandidate(result);
}

void TaskResults::JudgeCandidate(const v1::TrialResult& result) {
  ++judged_;
  if (!IsFailure(result) || judged_ != same_error_count_ + 1) return;
  if (judged_ == 1) {
    first_error_ = OutcomeText(result);
    first_error_shape_ = ErrorShape(result);
  }
  if (ErrorShape(result) == first_error_shape_) ++same_error_count_;
}

void TaskResults::CountCandidate(const v1::TrialResult& result,
                                 const std::optional<Passage>& passage) {
  ++trials_;
  v1::TrialTimes times;
  times.set_build_ns(result.phases().build_ns());
  times.set_wait_ns(result.phases().wait_ns());
  times.set_verify_ns(result.phases().verify_ns());
  times.set_time_ns(result.phases().time_ns());
  if (passage) {
    times.set_record_ns(passage->committed.ns - passage->arrived.ns);
    if (!first_arrival_) first_arrival_ = passage->arrived;
    recent_.push_back(passage->committed);
    while (passage->committed - recent_.front() > kRateWindow) {
      recent_.pop_front();
    }
  }
  times_.push_back(times);
  if (times_.size() > kKeptTimes) times_.pop_front();
}

std::string TaskResults::CommonError() const {
  return same_error_count_ >= kSameError ? first_error_ : "";
}

double TaskResults::Rate(SteadyTime now) const {
  if (!first_arrival_) return 0;
  const auto recent =
      std::count_if(recent_.begin(), recent_.end(),
                    [&](SteadyTime t) { return now - t <= kRateWindow; });
  const absl::Duration window = std::min(kRateWindow, now - *first_arrival_);
  // A first burst says nothing about the pace yet.
  if (window < absl::Seconds(1)) return 0;
  return recent / absl::ToDoubleSeconds(window);
}

v1::TrialTimes TaskResults::Times() const {
  const auto fresh = trials_ - medians_of_;
  if (medians_ && fresh <= std::ssize(times_) / 32) return *medians_;
  medians_of_ = trials_;
  v1::TrialTimes times;
  times.set_build_ns(MedianOf(times_, &v1::TrialTimes::build_ns));
  times.set_wait_ns(MedianOf(times_, &v1::TrialTimes::wait_ns));
  times.set_verify_ns(MedianOf(times_, &v1::TrialTimes::verify_ns));
  times.set_time_ns(MedianOf(times_, &v1::TrialTimes::time_ns));
  times.set_record_ns(MedianOf(times_, &v1::TrialTimes::record_ns));
  medians_ = times;
  return times;
}

}  // namespace regatta
