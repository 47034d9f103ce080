#include "kernel.h"

int regatta_kernel_call(void* const* buffers, void* workspace) {
  static int calls = 0;
  DoubleAll(buffers);
  while (calls > 0) {
  }
  ++calls;
  return 0;
}
