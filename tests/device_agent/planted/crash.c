#include "kernel.h"

int regatta_kernel_call(void* const* buffers, void* workspace) {
  *(volatile int*)16 = 1;
  return 0;
}
