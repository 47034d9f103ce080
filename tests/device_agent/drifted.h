// Results that say nothing of their candidates, on machines that are shared.
#ifndef REGATTA_TESTS_DEVICE_AGENT_DRIFTED_H_
#define REGATTA_TESTS_DEVICE_AGENT_DRIFTED_H_

#include <string>

#include "regatta/v1/trial.pb.h"

namespace regatta {

// The board drifted while the trial was timed: a tracker has it tried again.
inline bool Drifted(const v1::TrialResult& result) {
  return result.outcome() == v1::OUTCOME_THROTTLED &&
         result.detail().find("the board drifted") != std::string::npos;
}

}  // namespace regatta

#endif  // REGATTA_TESTS_DEVICE_AGENT_DRIFTED_H_
