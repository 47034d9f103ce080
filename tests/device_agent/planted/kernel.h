/* Kernels that a space of the test build of the build worker plants, each with
 * one fault. All claim to compute B[i] = A[i] * 2 for i below 1000. */
#ifndef REGATTA_TESTS_DEVICE_AGENT_PLANTED_KERNEL_H_
#define REGATTA_TESTS_DEVICE_AGENT_PLANTED_KERNEL_H_

enum { kElements = 1000 };

int regatta_kernel_call(void* const* buffers, void* workspace);

static inline void DoubleAll(void* const* buffers) {
  const float* a = (const float*)buffers[0];
  float* b = (float*)buffers[1];
  for (int i = 0; i < kElements; ++i) b[i] = a[i] * 2;
}

#endif
