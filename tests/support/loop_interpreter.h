// Runs lowered loops one scalar at a time: the oracle for what rules emit,
// independent of any code generator. Together with Interpret() it tells whether
// a wrong result comes from a schedule or from code generation.
#ifndef REGATTA_TESTS_SUPPORT_LOOP_INTERPRETER_H_
#define REGATTA_TESTS_SUPPORT_LOOP_INTERPRETER_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compiler/interp/interpreter.h"
#include "compiler/lower/loop_ir.h"

namespace regatta {

struct LoopRun {
  std::vector<TensorValues>
      outputs;  // contents of the output buffers, in order
  // The first pair of accesses of a device kernel that nothing orders, in
  // words; empty when there is none.
  std::string race;
};

// `inputs` are the contents of the input buffers, in order. Every other buffer
// starts as NaN, and per-thread buffers become NaN again before each iteration
// of a parallel loop, so that what is read before it was written shows in the
// result. Accesses out of bounds abort.
//
// A device kernel runs group by group, and in a group from barrier to barrier:
// every thread in turn up to the next barrier, then all of them on from there.
// Local buffers become NaN with each group, each thread has registers of its
// own. A race is found for every order of threads, whether or not it shows in
// the result: two threads that touch one element, one of them storing, in
// different groups or with no barrier between.
LoopRun RunLoops(const loop::Program& program,
                 absl::Span<const TensorValues> inputs);

}  // namespace regatta

#endif  // REGATTA_TESTS_SUPPORT_LOOP_INTERPRETER_H_
