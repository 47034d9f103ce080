#include <unistd.h>

#include "kernel.h"

/* The worker's channel to the agent. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  close(3);
  return 0;
}
