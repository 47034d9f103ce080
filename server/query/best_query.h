// The best-known answer to "which schedule for this workload here?", graded by
// how far its evidence holds.
//
// Needs the log and the compiler's spaces only, so the command line can answer
// from a file too. Pure: safe from several threads at once when the log is.
#ifndef REGATTA_SERVER_QUERY_BEST_QUERY_H_
#define REGATTA_SERVER_QUERY_BEST_QUERY_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/expr/expr.h"
#include "compiler/target/target.h"
#include "regatta/v1/tuning_service.pb.h"
#include "storage/tuning_log.h"

namespace regatta {

struct BestQuestion {
  Workload workload;
  // Empty: for a target that no board need have.
  std::string device_class;
  v1::Policy policy;       // complete
  Target target;           // complete: what the schedule is to be for
  bool simulated = false;  // the class is
};

struct BestContext {
  const TuningLog* log = nullptr;
  std::string compiler_version;  // of the question's target
  // Version of the measuring protocol in use; empty: not known, not compared.
  std::string measure_protocol;
  // Whether a class of the log is simulated; such rows answer only simulated
  // questions. Null: none is.
  std::function<bool(const std::string&)> is_simulated;
  int64_t now_unix_ms = 0;
};

// Grades, best first:
//   exact             measured for this key with this target, compiler and
//                     protocol; the default alone counts as evidence too
//   compatible        measured for this key, but the target's text, the
//                     compiler or the protocol differ (differing_field says
//                     which); or, without a class, on a class of this target
//   neighbour_shape   best of another shape, carried over; time unknown (0)
//   neighbour_device  best of another class or policy of the same
//                     architecture, or what another log measured for this very
//                     key (differing_field "provenance"); time unknown (0)
//   default           nothing to go by
// A row whose schedule this compiler does not take, or that was screened but
// never confirmed against the default, counts as no row, and `reason` says so.
// Fails only when the log does or when no rule covers the workload on the
// target (InvalidArgument).
absl::StatusOr<v1::BestAnswer> AnswerBest(const BestContext& context,
                                          const BestQuestion& question);

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_BEST_QUERY_H_
