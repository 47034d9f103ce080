#define _GNU_SOURCE
#include <sys/resource.h>

#include "kernel.h"

/* At the hard limit of processor time the kernel kills. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  const struct rlimit second = {1, 1};
  DoubleAll(buffers);
  if (setrlimit(RLIMIT_CPU, &second) != 0) return 0;
  for (volatile int i = 0;; i = i + 1) {
  }
}
