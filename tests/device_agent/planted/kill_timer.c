#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"

int regatta_kernel_call(void* const* buffers, void* workspace) {
  const struct itimerspec soon = {{0, 0}, {0, 1000000}};
  struct sigevent event;
  timer_t timer;
  DoubleAll(buffers);
  memset(&event, 0, sizeof(event));
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
      timer_settime(timer, 0, &soon, 0) != 0) {
    return 0;
  }
  for (;;) pause();
}
