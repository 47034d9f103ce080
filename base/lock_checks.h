// Checks of the order of locks inside of libraries.
#ifndef REGATTA_BASE_LOCK_CHECKS_H_
#define REGATTA_BASE_LOCK_CHECKS_H_

namespace regatta {

// Turns off abseil's search for deadlocks, for this process: gRPC's locks are
// abseil's, distributions build it with the search, and with thousands of
// connections it takes a tenth of a daemon's processor time. The thread
// sanitizer looks for the same.
void SkipLockChecks();

}  // namespace regatta

#endif  // REGATTA_BASE_LOCK_CHECKS_H_
