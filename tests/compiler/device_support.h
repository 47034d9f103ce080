// Modules of devices, built from hand-written loops and run.
#ifndef REGATTA_TESTS_COMPILER_DEVICE_SUPPORT_H_
#define REGATTA_TESTS_COMPILER_DEVICE_SUPPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/lower/loop_ir.h"
#include "compiler/module/module.h"
#include "compiler/target/target.h"

namespace regatta {

// A complete target from its text; a wrong one fails the process.
Target CompleteTargetOf(const std::string& text);

// Lowers and generates for any kind of target; a failure fails the test and
// gives an empty module.
Module BuildFor(const loop::Program& program, const Target& target,
                const std::string& name = "k");

// Whole numbers in [-7, 7] for every input buffer: sums of products are exact
// in every order.
std::vector<TensorValues> WholeNumbers(const loop::Program& program,
                                       uint64_t seed);

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_DEVICE_SUPPORT_H_
