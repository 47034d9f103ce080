#include <fcntl.h>

#include "kernel.h"

int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  open("/tmp/planted", O_WRONLY | O_CREAT, 0644);
  return 0;
}
