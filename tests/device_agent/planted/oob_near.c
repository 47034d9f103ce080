#include "kernel.h"

int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  ((volatile float*)buffers[1])[kElements] = 1;
  return 0;
}
