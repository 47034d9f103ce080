// Tensor expressions: what is computed, with no word about how.
//
// A Workload is a list of stages. Each stage assigns one tensor, element by
// element, from a scalar expression over tensor elements, perhaps reduced over
// some indices:
//
//   C[i,j] = sum(k) A[i,k] * B[k,j];  D[i,j] = max(C[i,j] + bias[j], 0)
//
// Everything here is an immutable value; sharing Exprs between threads is safe.
// A Workload in hand has passed the verifier (verifier.h): every extent is
// constant and positive, every access is in bounds or padded.
#ifndef REGATTA_COMPILER_EXPR_EXPR_H_
#define REGATTA_COMPILER_EXPR_EXPR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/expr/affine.h"
#include "compiler/module/dtype.h"

namespace regatta {

enum class UnaryOp {
  kNeg,
  kAbs,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kTanh,
  kSigmoid,
  kErf,
  kFloor,
  kRound
};
enum class BinaryOp {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kLess,
  kLessEqual,
  kEqual
};  // the last three give kBool

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

// One node. Which members mean something depends on `kind`.
struct Expr {
  enum class Kind {
    kConst,   // `constant`
    kIndex,   // value of `subscripts[0]` as an f32 (or i32) number
    kAccess,  // element of `tensor` at `subscripts`; outside the tensor:
              // `pad_value` where set, else the verifier has proven it inside
    kUnary,   // `unary`(operands[0])
    kBinary,  // operands[0] `binary` operands[1]
    kSelect,  // operands[0] ? operands[1] : operands[2]
    kCast,    // operands[0] converted to `dtype`
  };
  Kind kind;
  DType dtype = DType::kF32;  // of the value
  double constant = 0;
  int tensor = -1;
  std::vector<Affine> subscripts;  // variables are index ids of the workload
  // Of an access: per dimension, whether its subscript may pass the dimension's
  // extent K and then counts on in the dimension before it, as T[e/K,e%K] does
  // with subscripts 0 and e. Empty: nowhere. Flat offsets do not care; whoever
  // compares subscripts with single dimensions must (see Positions).
  std::vector<bool> carries;
  std::optional<double> pad_value;
  UnaryOp unary = UnaryOp::kNeg;
  BinaryOp binary = BinaryOp::kAdd;
  std::vector<ExprPtr> operands;
};

enum class Reduction { kNone, kSum, kProd, kMax, kMin };

struct IndexVar {
  std::string name;
  int64_t extent = 0;
};

enum class TensorRole { kInput, kInternal, kOutput };

struct TensorDecl {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  TensorRole role = TensorRole::kInput;
  int64_t Elements() const;
};

// tensor[indices...] = reduction(reduce_indices) value
struct Stage {
  int tensor = -1;
  std::vector<int> indices;  // one plain index per dimension
  Reduction reduction = Reduction::kNone;
  std::vector<int> reduce_indices;  // empty exactly when kNone
  DType accumulator = DType::kF32;  // type of the running value
  ExprPtr value;
};

struct Workload {
  std::vector<IndexVar> indices;
  std::vector<TensorDecl> tensors;  // inputs in order of first use, then
                                    // assigned tensors in order of assignment
  std::vector<Stage> stages;
  // The operator's name for operator calls ("matmul"), else the structural
  // rule that describes the last reduction ("contraction", "reduction",
  // "elementwise").
  std::string family;
  // What a person writes: the normalised operator call (parameters in the
  // operator's order, defaults left out) or the expression. Parses back to an
  // equal workload.
  std::string text;
  // The expression with indices and tensors renamed by order of appearance:
  // the canonical bytes. Equal mathematics on equal shapes and types, written
  // with whatever names or as an operator call, gives equal bytes.
  std::string canonical;
  // First 32 hexadecimal digits of SHA-256 of `canonical`.
  std::string key;

  std::vector<int> TensorsWithRole(TensorRole role) const;
  // Arithmetic operations of one evaluation, each add, multiply, compare or
  // function call counting one, reductions counting one per element.
  double Flops() const;
  // Bytes that must move at least: every input and output once.
  double Bytes() const;
};

// Neighbouring dimensions that an access walks as one: a single dimension, or
// one and all that carry into it. Inside the tensor when 0 <= form < extent.
struct Position {
  size_t first = 0, count = 1;  // dimensions
  Affine form;
  int64_t extent = 0;
};
// In order; together they are all dimensions. REQUIRES: `access` is one, of a
// tensor with that shape.
std::vector<Position> Positions(const std::vector<int64_t>& shape,
                                const Expr& access);
// Whether any dimension carries.
bool Carries(const Expr& access);

// Extent of index `id`, as a function for Affine::Min and Max.
std::function<int64_t(int)> Extents(const Workload& workload);

}  // namespace regatta

#endif  // REGATTA_COMPILER_EXPR_EXPR_H_
