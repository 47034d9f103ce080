#include <sys/time.h>

#include "kernel.h"

/* Asks, once, for a signal a moment after it has returned. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  static int calls = 0;
  const struct itimerval soon = {{0, 0}, {0, 1000}};
  DoubleAll(buffers);
  if (calls++ == 0) setitimer(ITIMER_REAL, &soon, 0);
  return 0;
}
