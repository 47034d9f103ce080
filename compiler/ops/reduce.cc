#include "compiler/ops/reduce.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/op_types.h"
#include "compiler/ops/shapes.h"

namespace regatta {
namespace {

// What is reduced, and where the results go.
struct Reduced {
  std::vector<std::string> all;   // a name for each dimension
  std::vector<std::string> over;  // of the dimensions reduced over
  std::vector<int64_t> over_extents;
  std::vector<std::string> kept;
  std::vector<int64_t> kept_extents;
  int64_t count = 1;  // elements that make one result
};

absl::StatusOr<Reduced> ReducedOf(const OpArguments& arguments) {
  const std::vector<int64_t> shape = arguments.Ints("shape");
  const std::vector<int64_t> axes = arguments.Ints("axes");
  RETURN_IF_ERROR(CheckAxes("axes", axes, shape.size()));
  Reduced r{.all = Names("i", shape.size())};
  double count = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool over = std::count(axes.begin(), axes.end(), d) > 0;
    (over ? r.over : r.kept).push_back(r.all[d]);
    (over ? r.over_extents : r.kept_extents).push_back(shape[d]);
    if (over) count *= static_cast<double>(shape[d]);
  }
  if (count > (1 << 30)) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " elements make one result; at most ", 1 << 30,
                     " are supported"));
  }
  r.count = static_cast<int64_t>(count);
  // A tensor has at least one dimension.
  if (r.kept.empty()) {
    r.kept = {"o"};
    r.kept_extents = {1};
  }
  return r;
}

// The place of the greatest (least) element among those reduced over, counted
// row-major. The first one wins, and a NaN counts as the greatest (least).
void AddPlace(const std::string& extreme, const std::string& compute,
              const Reduced& r, ExpressionText& text) {
  const std::string over = absl::StrJoin(r.over, ",");
  const std::string x = Element("X", r.all), m = Element("M", r.kept);
  std::string place;
  int64_t stride = r.count;
  for (size_t d = 0; d < r.over.size(); ++d) {
    stride /= r.over_extents[d];
    absl::StrAppend(&place, d > 0 ? " + " : "", r.over[d], " * ", stride);
  }
  text.Stage("M", compute, r.kept_extents, r.kept,
             absl::StrCat(extreme, "(", over, ") ", x));
  const std::string value =
      compute == "i32"
          ? absl::Substitute("select($0 == $1, $2, $3)", x, m, place, r.count)
          : absl::Substitute("select($0 == $1, $2, select($0 == $0, $3, $2))",
                             x, m, place, r.count);
  text.Stage("Y", "i32", r.kept_extents, r.kept,
             absl::StrCat("min(", over, ") ", value));
}

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  ASSIGN_OR_RETURN(const Reduced r, ReducedOf(arguments));
  const std::string& kind = arguments.Word("kind");
  const std::string& dtype = arguments.Word("dtype");
  const bool integers = dtype == "i8";
  ExpressionText text;
  for (size_t d = 0; d < r.kept.size(); ++d) {
    text.Index(r.kept[d], r.kept_extents[d]);
  }
  for (size_t d = 0; d < r.over.size(); ++d) {
    text.Index(r.over[d], r.over_extents[d]);
  }
  text.Tensor("X", dtype, arguments.Ints("shape"));
  const std::string over = absl::StrCat("(", absl::StrJoin(r.over, ","), ") ");
  const std::string x = Element("X", r.all);
  const auto result = [&](const std::string& type, const std::string& value) {
    text.Stage("Y", type, r.kept_extents, r.kept, value);
  };
  if (kind == "argmax" || kind == "argmin") {
    AddPlace(kind.substr(3), integers ? "i32" : "f32", r, text);
  } else if (kind == "mean") {
    if (integers) {
      return absl::InvalidArgumentError(
          "kind=mean does not go with dtype=i8: a mean is a fraction");
    }
    result(dtype, absl::StrCat("sum", over, x, " * ",
                               Real(1.0 / static_cast<double>(r.count))));
  } else if (integers && (kind == "max" || kind == "min")) {
    text.Stage("M", "i32", r.kept_extents, r.kept, absl::StrCat(kind, over, x));
    result(dtype, absl::StrCat("i8(", Element("M", r.kept), ")"));
  } else {
    result(integers ? "i32" : dtype, absl::StrCat(kind, over, x));
  }
  return text.Text();
}

}  // namespace

Op ReduceOp() {
  return {.name = "reduce",
          .help =
              "reduction of X over any of its dimensions; argmax and argmin "
              "give the row-major place of the first, as i32, and take a NaN "
              "for it; sums of i8 are i32",
          .parameters = {ListParameter("shape", "of X, as in 32x64x16"),
                         ListParameter("axes",
                                       "dimensions reduced over, as in 0x2", 0),
                         WordParameter("kind", "what is computed", "sum",
                                       {"sum", "prod", "max", "min", "mean",
                                        "argmax", "argmin"}),
                         DTypeParameter(/*integers=*/true)},
          .expression = Expression,
          .samples = {
              "reduce(shape=64x128,axes=1)", "reduce(shape=33x21,axes=0)",
              "reduce(shape=5x7x19,axes=1,kind=max)",
              "reduce(shape=5x7x19,axes=0x2,kind=mean)",
              "reduce(shape=6x35,axes=0x1,kind=min)",
              "reduce(shape=3x4x9,axes=1x2,kind=prod)",
              "reduce(shape=7x61,axes=1,kind=argmax)",
              "reduce(shape=5x9x18,axes=0x1,kind=argmax)",
              "reduce(shape=5x9x18,axes=0x2,kind=argmin)",
              "reduce(shape=1,axes=0)", "reduce(shape=9x33,axes=1,dtype=f16)",
              "reduce(shape=9x33,axes=0,kind=mean,dtype=bf16)",
              "reduce(shape=9x33,axes=1,kind=argmax,dtype=f16)",
              "reduce(shape=9x33,axes=1,dtype=i8)",
              "reduce(shape=9x33,axes=0,kind=max,dtype=i8)",
              "reduce(shape=9x33,axes=1,kind=argmin,dtype=i8)"}};
}

}  // namespace regatta
