// Runs lowered loops one scalar at a time: the oracle for what rules emit,
// independent of any code generator. Together with Interpret() it tells whether
// a wrong result comes from a schedule or from code generation.
#ifndef REGATTA_TESTS_SUPPORT_LOOP_INTERPRETER_H_
#define REGATTA_TESTS_SUPPORT_LOOP_INTERPRETER_H_

#include <vector>

#include "absl/types/span.h"
#include "compiler/interp/interpreter.h"
#include "compiler/lower/loop_ir.h"

namespace regatta {

// Contents of the output buffers, in order. `inputs` are those of the input
// buffers, in order. Every other buffer starts as NaN, and per-thread buffers
// become NaN again before each iteration of a parallel loop, so that what is
// read before it was written shows in the result. Accesses out of bounds abort.
std::vector<TensorValues> RunLoops(const loop::Program& program,
                                   absl::Span<const TensorValues> inputs);

}  // namespace regatta

#endif  // REGATTA_TESTS_SUPPORT_LOOP_INTERPRETER_H_
