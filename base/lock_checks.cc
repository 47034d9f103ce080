#include "base/lock_checks.h"

#include "absl/synchronization/mutex.h"

namespace regatta {

void SkipLockChecks() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace regatta
