#include "compiler/ops/gather.h"

#include "absl/strings/substitute.h"
#include "compiler/ops/op_types.h"

namespace regatta {
namespace {

// An expression's subscripts are sums of indices: none is read from a tensor.
// So every row is looked at, and the one that is named is kept. No row is
// multiplied: infinities and NaNs of other rows stay where they are.
absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const std::string& dtype = arguments.Word("dtype");
  const std::string pick = "sum(r) select(picked[i] == r, X[r,j], 0)";
  const std::string stages = dtype == "i8"
                                 ? "S[i,j] = " + pick + "; Y[i,j] = i8(S[i,j])"
                                 : "Y[i,j] = " + pick;
  return absl::Substitute(
      "$0 where i=$1, j=$2, r=$3, picked=i32[$1], X=$4[$3,$2], Y=$4[$1,$2]$5",
      stages, arguments.Int("count"), arguments.Int("cols"),
      arguments.Int("rows"), dtype,
      dtype == "i8" ? absl::Substitute(", S=i32[$0,$1]", arguments.Int("count"),
                                       arguments.Int("cols"))
                    : "");
}

}  // namespace

Op GatherOp() {
  return {
      .name = "gather",
      .help =
          "rows of X[rows,cols] that picked[count] (i32) names, zeros for a "
          "name that is no row; looks at every row for every result, "
          "since no subscript can be read from a tensor",
      .parameters = {{.name = "rows", .help = "rows of X"},
                     {.name = "cols", .help = "columns of X"},
                     {.name = "count", .help = "rows taken"},
                     DTypeParameter(/*integers=*/true)},
      .expression = Expression,
      .samples = {"gather(rows=32,cols=64,count=16)",
                  "gather(rows=9,cols=37,count=5)",
                  "gather(rows=1,cols=1,count=1)",
                  "gather(rows=9,cols=37,count=5,dtype=f16)",
                  "gather(rows=9,cols=37,count=5,dtype=bf16)",
                  "gather(rows=9,cols=37,count=5,dtype=i8)"}};
}

}  // namespace regatta
