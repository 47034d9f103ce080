// Whether the target and the schedule of a trial that another log tells of can
// be read.
#ifndef REGATTA_SERVER_QUERY_SPEC_CHECK_H_
#define REGATTA_SERVER_QUERY_SPEC_CHECK_H_

#include <functional>

#include "absl/status/status.h"
#include "regatta/v1/trial.pb.h"

namespace regatta {

// For ImportOptions::check_spec. InvalidArgument: the target's text, the number
// of threads or, of a space of this program's version on a target that is
// described in full, the schedule's text makes no sense. Remembers spaces; may
// be called from several threads.
std::function<absl::Status(const v1::TrialSpec&)> MakeSpecCheck();

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_SPEC_CHECK_H_
