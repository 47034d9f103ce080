// Says, on standard error, how a candidate died: the signal, where it reached
// and in which call. The process then dies of that signal.
//
// One set of facts per process; set from the thread that calls the candidate.
#ifndef REGATTA_DEVICE_AGENT_RUN_CRASH_REPORT_H_
#define REGATTA_DEVICE_AGENT_RUN_CRASH_REPORT_H_

#include "device_agent/verify/guarded_memory.h"

namespace regatta {

// Handlers for SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT and SIGSYS:
//   "SIGSEGV at address 0x7f1200001000, 0 bytes past the end of output C, in
//   call 1" · "SIGSYS: socket(), in call 3"
void InstallCrashReports();

// A buffer that addresses may be explained by. At most 32; more are ignored.
// REQUIRES: `memory` stays where it is.
void DescribeCrashesNear(const GuardedMemory* memory);

// Forgets all buffers: their memory is about to go.
void ForgetBuffers();

// About to make call `number` (from 1).
void NoteCall(long number);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_CRASH_REPORT_H_
