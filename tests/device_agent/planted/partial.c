#include "kernel.h"

int regatta_kernel_call(void* const* buffers, void* workspace) {
  const float* a = (const float*)buffers[0];
  float* b = (float*)buffers[1];
  for (int i = 0; i < kElements - 1; ++i) b[i] = a[i] * 2;
  return 0;
}
