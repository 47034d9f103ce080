#include <fcntl.h>
#include <unistd.h>

#include "kernel.h"
#include "path.h"

/* 43 when it could read a byte of the file. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  char byte;
  DoubleAll(buffers);
  const int file = open((const char*)kPlantedPath, O_RDONLY);
  return file >= 0 && read(file, &byte, 1) == 1 ? 43 : 0;
}
