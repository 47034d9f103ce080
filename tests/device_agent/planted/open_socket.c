#include <sys/socket.h>

#include "kernel.h"

int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  socket(AF_INET, SOCK_STREAM, 0);
  return 0;
}
