// The simulated CUDA driver with functions that go wrong as FAULTY_CUDA says:
//   device      the first device does not tell its name (999)
//   version     the driver does not tell its version (999)
//   no_version  it tells that it is 0
//   alloc       no memory, for an invalid value (1)
//   launch      the same for launches
//   nan, negative, zero   times
// Everything else is the simulator's: this library is linked with it, so that
// what is not here is found there.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { kInvalidValue = 1, kUnknown = 999 };

static int is(const char *fault) {
  const char *said = getenv("FAULTY_CUDA");
  return said != NULL && strcmp(said, fault) == 0;
}

int cuDeviceGetName(char *name, int bytes, int device) {
  int (*next)(char *, int, int);
  *(void **)&next = dlsym(RTLD_NEXT, "cuDeviceGetName");
  return is("device") && device == 0 ? kUnknown : next(name, bytes, device);
}

int cuDriverGetVersion(int *version) {
  int (*next)(int *);
  *(void **)&next = dlsym(RTLD_NEXT, "cuDriverGetVersion");
  if (is("version")) return kUnknown;
  if (!is("no_version")) return next(version);
  *version = 0;
  return 0;
}

int cuMemAlloc_v2(unsigned long long *address, size_t bytes) {
  int (*next)(unsigned long long *, size_t);
  *(void **)&next = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
  return is("alloc") ? kInvalidValue : next(address, bytes);
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz,
                   unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **arguments, void **extra) {
  int (*next)(void *, unsigned, unsigned, unsigned, unsigned, unsigned,
              unsigned, unsigned, void *, void **, void **);
  *(void **)&next = dlsym(RTLD_NEXT, "cuLaunchKernel");
  if (is("launch")) return kInvalidValue;
  return next(function, gx, gy, gz, bx, by, bz, shared, stream, arguments,
              extra);
}

int cuEventElapsedTime(float *milliseconds, void *from, void *to) {
  int (*next)(float *, void *, void *);
  *(void **)&next = dlsym(RTLD_NEXT, "cuEventElapsedTime");
  const int error = next(milliseconds, from, to);
  if (is("nan")) *milliseconds = NAN;
  if (is("negative")) *milliseconds = -1;
  if (is("zero")) *milliseconds = 0;
  return error;
}
