#include "kernel.h"

int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  ((volatile float*)buffers[0])[0] = 1;
  return 0;
}
