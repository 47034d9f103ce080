#include <sys/prctl.h>

#include "kernel.h"

/* Does not want to die with the spawner, and hangs. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  prctl(PR_SET_PDEATHSIG, 0);
  for (volatile int i = 0;; i = i + 1) {
  }
}
