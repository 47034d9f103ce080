#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"

/* Leaves a process behind that left the session and the group, has another
 * parent and is deaf to signals. */
int regatta_kernel_call(void* const* buffers, void* workspace) {
  DoubleAll(buffers);
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    for (volatile int i = 0;; i = i + 1) {
    }
  }
  if (child > 0) waitpid(child, 0, 0);
  return 0;
}
