// The meaning of every scalar operation, on doubles, and the evaluation of one
// stage's expression at one point.
//
// Floats: computed in double and not rounded in between. Integers: exact, with
// two's complement wrap-around in i32. max and min with a NaN operand give
// NaN, so that no order of a reduction matters. round is to nearest, ties to even.
#ifndef REGATTA_COMPILER_INTERP_SCALAR_H_
#define REGATTA_COMPILER_INTERP_SCALAR_H_

#include <cstdint>
#include <vector>

#include "compiler/expr/expr.h"

namespace regatta {

// `type` is the operands'. Comparisons give 0 or 1.
double ApplyUnary(UnaryOp op, double a, DType type);
double ApplyBinary(BinaryOp op, double a, double b, DType type);

// What a reduction starts from, and one step of it. REQUIRES: not kNone.
double ReductionIdentity(Reduction reduction, DType accumulator);
double ReduceStep(Reduction reduction, double running, double value,
                  DType accumulator);

// Where an evaluation finds the elements of tensors.
class ElementSource {
 public:
  virtual ~ElementSource() = default;
  // REQUIRES: 0 <= offset < elements of `tensor` (row-major).
  virtual double Read(int tensor, int64_t offset) = 0;
};

// The value of `stage` for the output element whose left-hand indices hold
// their values in `index_values` (per index of the workload), reduced in the
// natural order of the reduction's indices and rounded to the tensor's type.
// Leaves the reduction's indices in `index_values` changed.
double EvaluateElement(const Workload& workload, const Stage& stage,
                       std::vector<int64_t>& index_values,
                       ElementSource& source);

// Sets the left-hand indices of `stage` to the coordinates of element `offset`.
void SetCoordinates(const Workload& workload, const Stage& stage,
                    int64_t offset, std::vector<int64_t>& index_values);

// Advances `indices` like the digits of a counter, the last fastest; false when
// it wrapped around to all zeros.
bool NextPoint(const Workload& workload, const std::vector<int>& indices,
               std::vector<int64_t>& index_values);

}  // namespace regatta

#endif  // REGATTA_COMPILER_INTERP_SCALAR_H_
