#include <string.h>
#include <unistd.h>

#include "kernel.h"

/* Writes nonsense into the worker's channel to the agent. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  char nonsense[256];
  memset(nonsense, 0xEE, sizeof(nonsense));
  DoubleAll(buffers);
  return write(3, nonsense, sizeof(nonsense)) < 0;
}
