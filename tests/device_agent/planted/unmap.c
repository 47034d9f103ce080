#include <stdint.h>
#include <sys/mman.h>

#include "kernel.h"

/* Takes its own output away after it was made. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  munmap((void*)((uintptr_t)buffers[1] & ~(uintptr_t)4095), 8192);
  return 0;
}
