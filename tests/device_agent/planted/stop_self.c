#include <signal.h>

#include "kernel.h"

/* Stopped, it can be killed and nothing else. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  raise(SIGSTOP);
  DoubleAll(buffers);
  return 0;
}
