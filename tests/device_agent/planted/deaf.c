#include <signal.h>

#include "kernel.h"

/* Blocks every signal that can be blocked, and hangs. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, 0);
  for (volatile int i = 0;; i = i + 1) {
  }
}
