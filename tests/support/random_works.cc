#include "tests/support/random_works.h"

#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"

namespace regatta {

std::vector<v1::Work> RandomWorks(Random& random, uint64_t spread, bool has_y) {
  const auto chance = [&random](double p) { return random.Unit() < p; };
  std::vector<v1::Work> works(20 + random.Below(spread));
  std::map<int64_t, int64_t> ordinals;
  for (v1::Work& work : works) {
    work.set_job_id(1 + static_cast<int64_t>(random.Below(3)));
    int64_t& ordinal = ordinals[work.job_id()];
    work.set_work_id(absl::StrCat(work.job_id(), "/0/", ordinal));
    work.set_priority(static_cast<int>(random.Below(2)));
    work.set_device_class(has_y && chance(0.4) ? "y" : "x");
    work.set_compiler_version("c1");
    work.set_space("cpu");
    work.set_space_version(1);
    work.set_mode(chance(0.2) ? v1::ASSIGNMENT_MODE_INTERLEAVE
                              : v1::ASSIGNMENT_MODE_SCREEN);
    const int trials = chance(0.4) ? 1 + static_cast<int>(random.Below(5)) : 1;
    for (int t = 0; t < trials; ++t) {
      v1::TrialSpec* trial = work.add_trials();
      trial->set_trial_id(absl::StrCat(work.job_id(), "/0/", ordinal++));
      trial->set_job_id(work.job_id());
      trial->set_kind(v1::TRIAL_KIND_CANDIDATE);
      trial->set_workload("w");
      trial->set_device_class(work.device_class());
      trial->set_target("cpu");
      trial->set_compiler_version("c1");
      trial->mutable_schedule()->set_space("cpu");
      trial->mutable_schedule()->set_space_version(1);
      trial->mutable_schedule()->set_text(trial->trial_id());
    }
  }
  return works;
}

}  // namespace regatta
