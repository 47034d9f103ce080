// What the parser reads before types and shapes are known, with positions. Used
// by parser.cc and elaborate.cc only.
#ifndef REGATTA_COMPILER_EXPR_SYNTAX_H_
#define REGATTA_COMPILER_EXPR_SYNTAX_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/expr/expr.h"

namespace regatta {

// Nesting and operands in a row that one right-hand side may have. It bounds
// the recursion of everything that walks an expression.
inline constexpr int kMaxExpressionDepth = 256;

// Bounds on what one text may declare; generous for operators, and small enough
// that sums of products of extents and coefficients fit int64.
inline constexpr size_t kMaxIndices = 64;
inline constexpr size_t kMaxTensors = 64;
inline constexpr size_t kMaxRank = 16;
inline constexpr int64_t kMaxExtent = int64_t{1} << 32;
inline constexpr int64_t kMaxSubscriptCoefficient = int64_t{1} << 24;
inline constexpr int64_t kMaxSubscriptConstant = int64_t{1} << 40;

// What follows a subscript: e / divisor % modulus. No modulus: 0.
struct SubscriptPart {
  int64_t divisor = 1;
  int64_t modulus = 0;
  bool IsWhole() const { return divisor == 1 && modulus == 0; }
};

struct Syntax;
using SyntaxPtr = std::shared_ptr<const Syntax>;

// A scalar value as written.
struct Syntax {
  Expr::Kind kind;
  size_t offset = 0;  // where it stands in the text
  int depth = 1;
  double number = 0;  // kConst
  int index = -1;     // kIndex
  int tensor = -1;    // kAccess
  std::vector<Affine> subscripts;
  std::vector<SubscriptPart> parts;  // of each subscript
  std::optional<double> pad_value;
  UnaryOp unary = UnaryOp::kNeg;
  BinaryOp binary = BinaryOp::kAdd;
  DType cast = DType::kF32;  // kCast
  std::vector<SyntaxPtr> operands;
};

struct NamedThing {
  std::string name;
  size_t offset = 0;  // of its first use
};

struct TensorBinding {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  size_t offset = 0;
};

struct StageSyntax {
  int tensor = -1;
  size_t offset = 0;
  std::vector<int> indices;
  Reduction reduction = Reduction::kNone;
  std::vector<int> reduce_indices;
  SyntaxPtr value;
};

struct WorkloadSyntax {
  std::string_view text;
  std::vector<NamedThing> indices;                     // in order of appearance
  std::vector<std::optional<int64_t>> extents;         // per index
  std::vector<NamedThing> tensors;                     // in order of appearance
  std::vector<std::optional<TensorBinding>> bindings;  // per tensor
  DType default_dtype = DType::kF32;
  std::vector<StageSyntax> stages;
};

// Types, shapes and roles: a workload without family, text, canonical and key,
// not yet verified. InvalidArgument with a position.
absl::StatusOr<Workload> Elaborate(const WorkloadSyntax& syntax);

}  // namespace regatta

#endif  // REGATTA_COMPILER_EXPR_SYNTAX_H_
