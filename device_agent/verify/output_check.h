// Whether an output is right: every element against the reference, within a
// tolerance that follows from how the number was computed.
//
// For a float output of type T with at most K terms behind an element,
//
//   tolerance(e) = a * (4 * sqrt(K) * rms + 16 * |e|) + t * 2 * (rms + |e|)
//
// where e is the expected value, rms the root mean square of the expected
// output, a the spacing of the accumulator's type at 1 (f32: 2^-23) and t that
// of T. The first term: rounding errors of a sum walk at random, so they grow
// with the square root of its length and with the partial sums, whose size the
// rms stands for; 16 spacings for functions such as exp. The second: storing to
// T, in internal tensors of that type too. A missing or doubled term is of the
// order of rms / sqrt(K), which exceeds the tolerance up to K of about a
// million in f32. Integers must be equal. Infinities must be equal, NaN must be
// NaN.
//
// Pure functions.
#ifndef REGATTA_DEVICE_AGENT_VERIFY_OUTPUT_CHECK_H_
#define REGATTA_DEVICE_AGENT_VERIFY_OUTPUT_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "compiler/module/dtype.h"

namespace regatta {

class Tolerance {
 public:
  // REQUIRES: reduction_length >= 1, rms >= 0.
  Tolerance(DType type, int64_t reduction_length, double rms);
  // Largest allowed distance from `expected`.
  double At(double expected) const;
  // |got - expected| / At(expected); infinite for what can never pass, 0 for
  // equal values whatever they are. At most 1 passes.
  double Error(double got, double expected) const;

 private:
  double absolute_ = 0, relative_ = 0;
};

struct OutputCheck {
  double max_error = 0;  // largest Tolerance::Error
  int64_t wrong = 0;     // elements whose error exceeds 1
  // The first wrong element.
  int64_t element = -1;
  double got = 0, expected = 0;

  bool ok() const { return wrong == 0; }
  // "element 17 of 4096: got 1.5, expected 2.25; 3 elements are wrong".
  std::string Describe(int64_t elements) const;
};

// Compares `elements` elements of `type`; `expected` has the same type.
OutputCheck CheckOutput(const void* got, const void* expected, int64_t elements,
                        DType type, int64_t reduction_length);

// Compares single elements of `output` with values in double precision.
// REQUIRES: equal lengths, offsets within the output.
OutputCheck CheckSamples(const void* output, int64_t elements, DType type,
                         int64_t reduction_length,
                         absl::Span<const int64_t> offsets,
                         absl::Span<const double> expected);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_VERIFY_OUTPUT_CHECK_H_
