// OpenCL launchers, compiled by a C compiler and run on the OpenCL device here.
#include <gtest/gtest.h>

#include <string>

#include "tests/compiler/launcher_program.h"
#include "tests/device_agent/opencl_support.h"

namespace regatta {
namespace {

using OpenClLauncherTest = testing::OpenClTest;

// The part of OpenCL that a caller uses to keep tensors on the device.
constexpr char kDeviceCode[] = R"(
#include <limits.h>
#include <stdint.h>

int clGetPlatformIDs(unsigned int, void **, unsigned int *);
int clGetDeviceIDs(void *, uint64_t, unsigned int, void **, unsigned int *);
void *clCreateContext(const void *, unsigned int, void *const *, void *,
                      void *, int *);
void *clCreateCommandQueue(void *, void *, uint64_t, int *);
void *clCreateBuffer(void *, uint64_t, size_t, void *, int *);
int clEnqueueReadBuffer(void *, void *, unsigned int, size_t, size_t, void *,
                        unsigned int, void *const *, void **);

static void *context, *queue;

static void begin(void) {
  void *platform, *device;
  int error;
  k_handle *handle;
  if (clGetPlatformIDs(1, &platform, NULL) != 0) exit(20);
  if (clGetDeviceIDs(platform, 0xFFFFFFFFu, 1, &device, NULL) != 0) exit(21);
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  queue = clCreateCommandQueue(context, device, 1, &error);
  if (error == 0 && k_open(&handle, 0, queue) != 7) exit(22);
  queue = clCreateCommandQueue(context, device, 0, &error);
  if (error != 0) exit(23);
  if (k_open(&handle, 1000, NULL) != 5 || handle != NULL) exit(24);
  if (k_open(&handle, INT_MIN, NULL) != 5 || handle != NULL) exit(27);
}

static void *caller_context(void) { return queue; }

static void *device_new(size_t bytes, const void *from) {
  const uint64_t read_write = 1, copy = 32;
  int error;
  void *memory = clCreateBuffer(context, from == NULL ? read_write
                                                      : read_write | copy,
                                bytes, (void *)(uintptr_t)from, &error);
  if (error != 0) exit(25);
  return memory;
}

static void device_read(void *memory, void *to, size_t bytes) {
  if (clEnqueueReadBuffer(queue, memory, 1, 0, bytes, to, 0, NULL, NULL) != 0) {
    exit(26);
  }
}
)";

TEST_F(OpenClLauncherTest, CallsEveryKindOfKernelFromC) {
  LauncherProgram program(
      {"matmul(m=33,n=48,k=20)",
       "conv2d(n=1,h=9,w=9,ci=4,co=8,kh=3,kw=3,pad=1)",
       "softmax(rows=5,cols=70)", "dense(m=8,n=16,k=12,dtype=f16)",
       // Numbers of its own, and a tensor that stays on the device.
       "C[i,j] = sum(k) A[i,k] * B[k,j]; D[i] = sum(j) C[i,j] * C[i,j] + 0.5 "
       "where i=12, j=20, k=9"},
      "opencl", kDeviceCode, "-l:libOpenCL.so.1");
  if (HasFatalFailure()) return;
  const testing::ProcessResult result = program.Run();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  program.ExpectRightResults();
}

TEST_F(OpenClLauncherTest, MakesTheImagesThatKernelsTake) {
  if (device_.image_width() == 0) {
    GTEST_SKIP() << "no images of floats and halves on " << device_.name();
  }
  LauncherProgram program(
      {"matmul(m=33,n=48,k=20)", "matmul(m=9,n=64,k=12,dtype=f16)"},
      "opencl,image_width=4096,image_height=4096", kDeviceCode,
      "-l:libOpenCL.so.1", "b_from=image");
  if (HasFatalFailure()) return;
  const testing::ProcessResult result = program.Run();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  program.ExpectRightResults();
}

}  // namespace
}  // namespace regatta
