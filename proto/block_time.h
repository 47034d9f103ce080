// What a timed block says of one call.
#ifndef REGATTA_PROTO_BLOCK_TIME_H_
#define REGATTA_PROTO_BLOCK_TIME_H_

#include <algorithm>

#include "regatta/v1/trial.pb.h"

namespace regatta {

// Nanoseconds a call; a block without calls counts as one.
inline double NsPerCall(const v1::Block& block) {
  return static_cast<double>(block.elapsed_ns()) /
         static_cast<double>(std::max<int64_t>(1, block.calls()));
}

}  // namespace regatta

#endif  // REGATTA_PROTO_BLOCK_TIME_H_
