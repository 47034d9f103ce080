// How long a trial held its device, from what its result says.
#ifndef REGATTA_PROTO_DEVICE_TIME_H_
#define REGATTA_PROTO_DEVICE_TIME_H_

#include <cstdint>

#include "regatta/v1/trial.pb.h"

namespace regatta {

// Nanoseconds of verifying and timing. A trial that never came so far costs its
// build instead: a job of failing candidates must not be free. Builds are not
// counted otherwise, since they overlap the timing of other trials. Never
// negative, at most a day.
int64_t DeviceNs(const v1::TrialResult& result);

}  // namespace regatta

#endif  // REGATTA_PROTO_DEVICE_TIME_H_
