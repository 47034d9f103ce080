// The oracle: evaluates an unscheduled workload the slow and plain way, in
// double precision, rounding to a tensor's type only where a stage stores to
// it. Whatever a schedule or a code generator does must agree with this.
//
// Stateless apart from the evaluator's own memory; one evaluator per thread.
#ifndef REGATTA_COMPILER_INTERP_INTERPRETER_H_
#define REGATTA_COMPILER_INTERP_INTERPRETER_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "compiler/expr/expr.h"

namespace regatta {

// Elements of one tensor, row-major, as doubles.
using TensorValues = std::vector<double>;

// `inputs` in the order of Workload::TensorsWithRole(kInput); returns the
// outputs in the order of TensorsWithRole(kOutput).
// REQUIRES: sizes match the shapes.
std::vector<TensorValues> Interpret(const Workload& workload,
                                    absl::Span<const TensorValues> inputs);

// Single elements of outputs, computing only what they depend on and
// remembering internal tensors between calls. For checking samples of a large
// result.
class PointInterpreter {
 public:
  // REQUIRES: both outlive the interpreter.
  PointInterpreter(const Workload& workload,
                   absl::Span<const TensorValues> inputs);
  // `offset` is row-major into tensor `tensor` (an index of Workload::tensors).
  double Evaluate(int tensor, int64_t offset);

 private:
  class Source;

  const Workload& workload_;
  // Per tensor of the workload: an input's elements, or the stage that assigns
  // it and the elements computed so far.
  std::vector<const TensorValues*> input_values_;
  std::vector<const Stage*> stages_;
  std::vector<std::unordered_map<int64_t, double>> memo_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_INTERP_INTERPRETER_H_
