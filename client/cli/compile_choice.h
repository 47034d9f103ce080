// Which schedule `compile` takes, and why.
#ifndef REGATTA_CLIENT_CLI_COMPILE_CHOICE_H_
#define REGATTA_CLIENT_CLI_COMPILE_CHOICE_H_

#include <string>

#include "absl/status/status.h"
#include "compiler/space/space.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta::cli {

struct Choice {
  std::string schedule;
  std::string grade;
  std::string reason;
};

// Only answers that were timed where they will be used may replace the default;
// what was measured elsewhere is a suggestion. A compatible answer whose
// compiler alone differs is built as a board would build it: where that gives
// the very bytes that were measured, it is exact.
Choice ChooseSchedule(const v1::BestAnswer& answer, const Space& space);

// `failure` of building what was chosen. One that says that the target has too
// little (FailedPrecondition) says only which rule; this adds of what, and what
// to do.
absl::Status ExplainRefusal(const absl::Status& failure, const Choice& choice,
                            const std::string& workload, const Target& target);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_COMPILE_CHOICE_H_
