// System calls that workers may not make.
//
// Two filters, the second on top of the first. Neither costs anything while a
// kernel runs: timed loops make no system calls.
//
// Both are inherited by everything the thread starts and cannot be taken off.
#ifndef REGATTA_DEVICE_AGENT_SANDBOX_SECCOMP_FILTER_H_
#define REGATTA_DEVICE_AGENT_SANDBOX_SECCOMP_FILTER_H_

#include <string>

#include "absl/status/status.h"

namespace regatta {

// Whether this kernel has filters.
bool SeccompAvailable();

// For a worker before it is executed: nothing that changes the machine, looks
// into other processes or opens a network socket. Such calls fail with EPERM.
// REQUIRES: no_new_privs is set. Internal names what failed.
absl::Status InstallWorkerFilter();

// For a run worker's calls of a candidate: besides the above no new process,
// program or file opened for writing, made or emptied, no signal to another
// process, and no SIGKILL even to itself, which would look like the host's: not
// by the kernel's hand either (limits, timers, owners of descriptors). Such
// calls raise SIGSYS in the calling thread and are not executed. Threads are
// allowed. REQUIRES: no_new_privs; one thread.
absl::Status InstallCandidateFilter();

// "socket" for its number on this architecture; "system call 999" for one
// without a name. Allocates: a signal handler may call it only because a
// system call of a candidate, and not the allocator, raised the signal.
std::string SyscallName(int number);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SANDBOX_SECCOMP_FILTER_H_
