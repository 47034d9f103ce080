#ifndef REGATTA_TRACKER_SESSION_CALLER_H_
#define REGATTA_TRACKER_SESSION_CALLER_H_

#include <optional>

#include "base/certs/identity.h"

namespace regatta {

// Who opened an agent's stream.
struct SessionCaller {
  // Whose certificate it came with; without one agents are what they say.
  std::optional<Identity> identity;
  bool local = false;  // from this machine
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_SESSION_CALLER_H_
