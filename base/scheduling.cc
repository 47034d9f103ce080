#include "base/scheduling.h"

#include <sched.h>

namespace regatta {

void YieldToOthers() {
  const sched_param none = {};
  // Anybody may; where a sandbox forbids it, it is only slower.
  (void)sched_setscheduler(/*pid=*/0, SCHED_BATCH, &none);
}

}  // namespace regatta
