// The best-known answer to "which schedule for this workload here?", graded by
// how far its evidence holds.
//
// Needs a source of best-known rows and the compiler's spaces only, so the
// command line and the query library can answer from a file, too. Safe from
// several threads at once when the source is.
#ifndef REGATTA_SERVER_QUERY_BEST_QUERY_H_
#define REGATTA_SERVER_QUERY_BEST_QUERY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/expr/expr.h"
#include "compiler/space/space.h"
#include "regatta/v1/tuning_service.pb.h"
#include "server/query/best_memo.h"
#include "server/query/rebuilds.h"
#include "storage/best_source.h"

namespace regatta {

struct BestQuestion {
  std::string workload_key;
  std::string workload_text;  // in its normal form
  // Null: parsed from the text once an answer needs more than the key.
  std::shared_ptr<const Workload> workload;
  // Empty: for a target that no board need have.
  std::string device_class;
  v1::Policy policy;  // complete
  // What the schedule is to be for.
  std::shared_ptr<const CompletedTarget> target;
  bool simulated = false;  // the class is
};

struct BestContext {
  const BestSource* source = nullptr;
  BestMemo* memo = nullptr;
  // Version of the measuring protocol in use; empty: not known, not compared.
  std::string measure_protocol;
  // Whether a class of the source is simulated; such rows answer only simulated
  // questions. Null: none is.
  std::function<bool(const std::string&)> is_simulated;
  // The compiler that rows marked `taken` or `same_binary` were checked by, for
  // this target. Empty: such marks do not count.
  std::string taken_by;
  std::string taken_target;
  // Null: no binary is known to be given.
  GivesBinary gives_binary;
  int64_t now_unix_ms = 0;
};

// Grades, best first:
//   exact             measured for this key with this target, compiler and
//                     protocol; the default alone counts as evidence too.
//                     Another compiler counts as this one where this one is
//                     known to give the very binary that was measured
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
// Fails only when the source does or when no rule covers the workload on the
// target (InvalidArgument).
absl::StatusOr<v1::BestAnswer> AnswerBest(const BestContext& context,
                                          const BestQuestion& question);

// age_s as of now, from measured_unix_ms.
void SetAge(int64_t now_unix_ms, v1::BestAnswer* answer);

// Why this compiler does not take a recorded schedule, and in `field` which
// part of it is to blame; absent: it does.
std::optional<std::string> WhyNotTaken(const v1::ScheduleText& schedule,
                                       const Space& space, std::string* field);

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_BEST_QUERY_H_
