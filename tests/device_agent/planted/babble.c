#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel.h"

/* Bytes that are no text, in what looks like the worker's own last words. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  static const char kText[] = "\xff\xc3\nSIGABRT in call 1 \xff\xfe\n";
  if (write(2, kText, sizeof(kText) - 1) < 0) return 44;
  signal(SIGABRT, SIG_DFL);
  abort();
}
