// What follows a sum of products where it is stored: bias, activation, scale
// and the conversion to the output's type. One place, so that every operator
// with these parameters means the same by them.
//
//   floats:        out(activation(sum + bias[channel]))
//   i8, out i32:   activation(sum + bias[channel]), none or relu
//   i8, out float: out(activation(f32(sum + bias[channel]) * scale[channel]))
//   i8, out i8:    requantised: none or relu of sum + bias[channel], exact in
//                  i32; converted to f32, times scale[channel], rounded to f32,
//                  rounded to the nearest whole number (halves to even) and
//                  clamped to -128 .. 127
// The bias has the type `dtype` (i32 for i8), the scale is f32. With an
// activation or a bias, sums stay in f32 (i32) until all of it is done.
#ifndef REGATTA_COMPILER_OPS_EPILOGUE_H_
#define REGATTA_COMPILER_OPS_EPILOGUE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/op.h"

namespace regatta {

OpParameter ActivationParameter();
OpParameter BiasParameter(std::string default_value);
// `out_dtype` of an operator that scales what it computes from integers.
OpParameter ScaledOutDTypeParameter();

// The text of `activation` of `x`, a primary: "max(x, 0)".
std::string Activated(const std::string& activation, const std::string& x);

// A sum and where it goes.
struct SumText {
  std::string output;  // name of the result
  std::vector<std::string> indices;
  std::vector<int64_t> shape;
  std::string value;    // "sum(k) A[i,k] * B[k,j]"
  std::string channel;  // subscript of bias and scale, from indices
  int64_t channels = 1;
};

// Appends the stages that compute `sum` and what `arguments` say follows:
// parameters `dtype`, `out_dtype`, `bias` and `activation`, of which an
// operator may lack the last two. Returns the name of the result's type.
// InvalidArgument for combinations that have no meaning.
absl::StatusOr<std::string> AddSum(const OpArguments& arguments,
                                   const SumText& sum, ExpressionText& text);

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_EPILOGUE_H_
