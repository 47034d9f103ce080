#include <string.h>
#include <unistd.h>

#include "kernel.h"

/* 16 MiB to standard error. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  static int calls = 0;
  char text[4096];
  DoubleAll(buffers);
  memset(text, 'A', sizeof(text));
  text[sizeof(text) - 1] = '\n';
  for (int i = 0; calls == 0 && i < 4096; ++i) {
    if (write(2, text, sizeof(text)) < 0) return 44;
  }
  ++calls;
  return 0;
}
