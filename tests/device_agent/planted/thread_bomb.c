#include <pthread.h>
#include <unistd.h>

#include "kernel.h"

static void* Wait(void* nothing) {
  for (;;) pause();
  return nothing;
}

int regatta_kernel_call(void* const* buffers, void* workspace) {
  pthread_attr_t small;
  pthread_t thread;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  for (;;) {
    if (pthread_create(&thread, &small, Wait, 0) != 0) usleep(1000);
  }
}
