#include <signal.h>

#include "kernel.h"
#include "processes.h"

/* Not -1: that is everybody of this user, other boards' workers too. */
static int Kill(pid_t pid) { return kill(pid, SIGKILL) == 0; }

int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  return ReachesAnother(Kill) ? 45 : 0;
}
