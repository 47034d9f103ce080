#include "kernel.h"

static int Deeper(volatile char* from) {
  volatile char block[4096];
  block[0] = from[0];
  return Deeper(block) + block[0];
}

int regatta_kernel_call(void* const* buffers, void* workspace) {
  volatile char start = 1;
  return Deeper(&start);
}
