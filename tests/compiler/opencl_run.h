// Modules run by the OpenCL runtime of run workers.
#ifndef REGATTA_TESTS_COMPILER_OPENCL_RUN_H_
#define REGATTA_TESTS_COMPILER_OPENCL_RUN_H_

#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/module/module.h"
#include "tests/device_agent/opencl_support.h"

namespace regatta {

class OpenClCodeTest : public testing::OpenClTest {
 protected:
  // One call on the first device; a failure, or a store outside outputs and
  // workspace, fails the test.
  std::vector<TensorValues> Run(const Module& module,
                                const std::vector<TensorValues>& inputs) const;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_OPENCL_RUN_H_
