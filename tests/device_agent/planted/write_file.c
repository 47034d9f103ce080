#include <fcntl.h>

#include "kernel.h"
#include "path.h"

int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  open((const char*)kPlantedPath, O_WRONLY | O_CREAT, 0644);
  return 0;
}
