// Compiled workloads run on values, and compared with the interpreter's.
#ifndef REGATTA_TESTS_COMPILER_MODULE_SUPPORT_H_
#define REGATTA_TESTS_COMPILER_MODULE_SUPPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/interp/interpreter.h"
#include "compiler/module/module.h"

namespace regatta {

// Inputs in [-1, 1], or small integers, that the tensors' types hold exactly.
std::vector<TensorValues> SeededInputs(const Workload& workload, uint64_t seed);

// The same, but bytes take all of their range.
std::vector<TensorValues> FullRangeInputs(const Workload& workload,
                                          uint64_t seed);

// Runs a module on packed tensors between fences.
std::vector<TensorValues> RunModule(const Module& module,
                                    const Workload& workload,
                                    const std::vector<TensorValues>& inputs);

// Fails the test, naming `what`, where outputs differ by more than rounding
// explains; integers must be equal.
void ExpectNear(const Workload& workload, const std::vector<TensorValues>& got,
                const std::vector<TensorValues>& expected,
                const std::string& what);

// What ExpectNear allows of an output of `type`, relative above 1: what
// rounding may do to the workload's longest sum of terms of at most about 1.
double ModuleTolerance(const Workload& workload, DType type);

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_MODULE_SUPPORT_H_
