#include <fcntl.h>

#include "kernel.h"
#include "path.h"

/* Makes a file without opening it for writing. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  open((const char*)kPlantedPath, O_RDONLY | O_CREAT | O_TRUNC, 0644);
  return 0;
}
