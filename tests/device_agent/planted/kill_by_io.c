#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel.h"

/* Asks to be killed when a descriptor becomes ready. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  int ends[2];
  DoubleAll(buffers);
  /* Of a pipe, since the filter refuses pairs of sockets. */
  if (pipe(ends) != 0 || fcntl(ends[0], F_SETOWN, getpid()) != 0 ||
      fcntl(ends[0], F_SETSIG, SIGKILL) != 0 ||
      fcntl(ends[0], F_SETFL, O_ASYNC) != 0) {
    return 0;
  }
  if (write(ends[1], "x", 1) != 1) return 0;
  for (;;) pause();
}
