// Programs of device kernels that every device's code must compute exactly as
// the loop interpreter does: all numbers in them are whole and small.
#ifndef REGATTA_TESTS_COMPILER_DEVICE_CASES_H_
#define REGATTA_TESTS_COMPILER_DEVICE_CASES_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/lower/loop_ir.h"
#include "compiler/module/module.h"

namespace regatta {

struct DeviceCase {
  std::string name;
  loop::Program program;
};
inline void PrintTo(const DeviceCase& c, std::ostream* out) { *out << c.name; }

const std::vector<DeviceCase>& DeviceCases();

// y[i] = body(x[i]) for `elements` elements: groups of 64 threads that take
// `lanes` elements each, guarded. One output for every body, in one kernel.
struct MapBody {
  DType to = DType::kF32;
  std::function<loop::ValuePtr(loop::ValuePtr)> value;
};
loop::Program MapProgram(int64_t elements, int64_t lanes, DType from,
                         const std::vector<MapBody>& bodies);

// Runs a module on inputs in order, and gives its outputs in order.
using DeviceRunner = std::function<std::vector<TensorValues>(
    const Module& module, const std::vector<TensorValues>& inputs)>;

// Fails the test where `run` of `module` gives anything but what the loop
// interpreter makes of `program`.
void ExpectExact(const loop::Program& program, const Module& module,
                 const DeviceRunner& run);

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_DEVICE_CASES_H_
