// A TrialRunner that runs nothing, for agents whose work is not what a test is
// about.
#ifndef REGATTA_TESTS_SUPPORT_IDLE_RUNNER_H_
#define REGATTA_TESTS_SUPPORT_IDLE_RUNNER_H_

#include <functional>
#include <string>

#include "device_agent/measure/trial_runner.h"

namespace regatta {

class IdleRunner : public TrialRunner {
 public:
  void Start(v1::Assignment) override {}
  void Stop(const std::string&) override {}
  void Finish(const std::string&, std::function<void()> idle) override {
    idle();
  }
  void UpdateDevice(const v1::DeviceInfo&) override {}
  int64_t WorkTicks() const override { return 0; }
};

}  // namespace regatta

#endif  // REGATTA_TESTS_SUPPORT_IDLE_RUNNER_H_
