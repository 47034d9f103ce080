#include <signal.h>
#include <unistd.h>

#include "kernel.h"

int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  kill(getpid(), SIGKILL);
  return 0;
}
