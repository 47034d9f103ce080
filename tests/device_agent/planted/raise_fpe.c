#include <signal.h>

#include "kernel.h"

int regatta_kernel_call(void* const* buffers, void* workspace) {
  return raise(SIGFPE);
}
