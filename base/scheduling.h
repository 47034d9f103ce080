// How the kernel schedules this process.
#ifndef REGATTA_BASE_SCHEDULING_H_
#define REGATTA_BASE_SCHEDULING_H_

namespace regatta {

// Threads that start from now on do not interrupt others when there is
// something for them to do, but wait for their turn (SCHED_BATCH). Where all
// processors are busy, a message then waits for some milliseconds, and many are
// done at one go instead of one at each of thousands of switches a second. On
// an idle processor nothing changes.
void YieldToOthers();

}  // namespace regatta

#endif  // REGATTA_BASE_SCHEDULING_H_
