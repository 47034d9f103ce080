// PTX written by hand for tests: kernels on one-dimensional f32 tensors, one
// thread for each element.
#ifndef REGATTA_TESTS_DEVICE_AGENT_CUDA_PTX_H_
#define REGATTA_TESTS_DEVICE_AGENT_CUDA_PTX_H_

#include <string>

namespace regatta::testing {

// The head of every module.
std::string PtxHead();

// A kernel of `pointers` parameters. In `body`, %r1 is the number i of the
// thread in the grid, %rdK the K-th parameter as a global address (from 1) and
// %rd1K (11, 12, ...) the address of its element i; %f1 to %f9, %p1 to %p4,
// %r11 to %r19 and %rd20 to %rd29 are free.
std::string PtxKernel(const std::string& entry, int pointers,
                      const std::string& body);

// A module of the kernel "add" of three pointers: c[i] = a[i] + b[i], then
// `more`.
std::string AddPtx(const std::string& more = "");

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_DEVICE_AGENT_CUDA_PTX_H_
