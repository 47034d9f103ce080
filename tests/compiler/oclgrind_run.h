// Modules run by Oclgrind, an OpenCL device that watches every access: races
// within a group and what stands outside a buffer are told with their line.
#ifndef REGATTA_TESTS_COMPILER_OCLGRIND_RUN_H_
#define REGATTA_TESTS_COMPILER_OCLGRIND_RUN_H_

#include <string>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/module/module.h"
#include "device_agent/run/opencl_device.h"

namespace regatta {

class Oclgrind {
 public:
  // Makes Oclgrind this process's only OpenCL device, as far as it is
  // installed. REQUIRES: nothing has loaded OpenCL before.
  Oclgrind();
  Oclgrind(const Oclgrind&) = delete;

  // Why nothing can be run: "no oclgrind here". Empty: it can.
  const std::string& missing() const { return missing_; }

  struct Result {
    std::vector<TensorValues> outputs;
    std::string complaints;  // the first ones; "" for none
  };
  // One call with buffers of exactly the size that the module says. A failure
  // of the driver fails the test. REQUIRES: missing() is empty.
  Result Run(const Module& module,
             const std::vector<TensorValues>& inputs) const;

 private:
  std::string missing_;
  opencl::FoundDevice found_;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_OCLGRIND_RUN_H_
