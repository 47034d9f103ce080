#define _GNU_SOURCE
#include <errno.h>
#include <sys/uio.h>

#include "kernel.h"
#include "processes.h"

/* Nothing is at this address, which is told to those alone who may look. */
static int Read(pid_t pid) {
  char here[1];
  struct iovec to = {here, 1}, from = {(void*)16, 1};
  return process_vm_readv(pid, &to, 1, &from, 1, 0) == 1 || errno == EFAULT;
}

int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  return ReachesAnother(Read) ? 42 : 0;
}
