// A TrialRunner that is not there yet: an agent speaks with the tracker before
// it knows its devices when a builder has to describe them first. An agent
// without devices never gets one.
//
// Thread-safe.
#ifndef REGATTA_DEVICE_AGENT_LOOP_LATE_RUNNER_H_
#define REGATTA_DEVICE_AGENT_LOOP_LATE_RUNNER_H_

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "base/check.h"
#include "device_agent/measure/trial_runner.h"

namespace regatta {

class LateRunner : public TrialRunner {
 public:
  // Before the tracker is told of any device; `runner` outlives this.
  void Set(TrialRunner* runner) { runner_ = runner; }

  void Start(v1::Assignment assignment) override {
    // Only devices get assignments.
    CHECK(runner_ != nullptr) << "an assignment without a device";
    runner_.load()->Start(std::move(assignment));
  }
  void Stop(const std::string& assignment_id) override {
    if (runner_ != nullptr) runner_.load()->Stop(assignment_id);
  }
  void Finish(const std::string& assignment_id,
              std::function<void()> done) override {
    if (runner_ == nullptr) return done();
    runner_.load()->Finish(assignment_id, std::move(done));
  }
  void UpdateDevice(const v1::DeviceInfo& device) override {
    CHECK(runner_ != nullptr);
    runner_.load()->UpdateDevice(device);
  }
  int64_t WorkTicks() const override {
    return runner_ == nullptr ? 0 : runner_.load()->WorkTicks();
  }

 private:
  std::atomic<TrialRunner*> runner_ = nullptr;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_LATE_RUNNER_H_
