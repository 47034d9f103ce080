#include <unistd.h>

#include "kernel.h"

int regatta_kernel_call(void* const* buffers, void* workspace) {
  static int calls = 0;
  if (calls++ > 0) _exit(7);
  DoubleAll(buffers);
  return 0;
}
