#include "compiler/ops/pool2d.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/image_layout.h"
#include "compiler/ops/op_types.h"
#include "compiler/ops/window.h"

namespace regatta {
namespace {

using Strings = std::vector<std::string>;

// The arguments with a global window spelled out, as WindowOf() reads them.
absl::StatusOr<Window> WindowOfKind(const OpArguments& arguments) {
  const bool global = arguments.Word("kind").substr(0, 7) == "global_";
  if (!global) {
    for (const char* name : {"kh", "kw"}) {
      if (arguments.Int(name) > 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("kind=", arguments.Word("kind"), " needs ", name,
                       ", the window's size, of at least 1"));
    }
    ASSIGN_OR_RETURN(Window window, WindowOf(arguments));
    for (const WindowAxis* axis : {&window.rows, &window.columns}) {
      if (axis->before < axis->taps && axis->after < axis->taps) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("a padding of ", std::max(axis->before, axis->after),
                       " leaves windows of ", axis->taps,
                       " with nothing of the image in them"));
    }
    return window;
  }
  Window window;
  window.rows = {.image = arguments.Int("h"), .taps = arguments.Int("h")};
  window.columns = {.image = arguments.Int("w"), .taps = arguments.Int("w")};
  // The parameters of one axis take over those of both, given or not.
  const std::pair<const char*, int64_t> kUnused[] = {
      {"kh", 0},         {"kw", 0},       {"stride", 1},   {"stride_h", 1},
      {"stride_w", 1},   {"pad", 0},      {"pad_top", 0},  {"pad_bottom", 0},
      {"pad_left", 0},   {"pad_right", 0}};
  for (const auto& [name, unused] : kUnused) {
    if (arguments.Int(name) == unused) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("kind=", arguments.Word("kind"),
                     " takes the whole image; leave ", name, " out"));
  }
  return window;
}

// How many elements of the image lie in the window at `index`, as text.
std::string Inside(const WindowAxis& axis, const char* index) {
  return absl::Substitute("(min($0*$1+$2, $3) - max($0*$1-$4, 0))", index,
                          axis.stride, axis.taps - axis.before, axis.image,
                          axis.before);
}

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const ImageLayout layout = LayoutOf(arguments);
  const int64_t n = arguments.Int("n"), c = arguments.Int("c");
  ASSIGN_OR_RETURN(const Window window, WindowOfKind(arguments));
  RETURN_IF_ERROR(CheckBlocks(layout, "channels", c));
  const std::string& dtype = arguments.Word("dtype");
  const bool integers = dtype == "i8";
  const bool greatest =
      arguments.Word("kind") == "max" || arguments.Word("kind") == "global_max";
  const auto block = layout.Blocked() ? std::vector<int64_t>{layout.block}
                                      : std::vector<int64_t>{};
  const Strings in_block = layout.Blocked() ? Strings{"cc"} : Strings{};
  const std::vector<int64_t> shape = layout.Order<int64_t>(
      {n}, {c / layout.block}, {window.rows.outputs, window.columns.outputs},
      block);
  const Strings out =
      layout.Order<std::string>({"n"}, {"c"}, {"y", "x"}, in_block);
  const std::string x = window.Read(
      Element("X",
              layout.Order<std::string>({"n"}, {"c"},
                                        {window.rows.Position("y", "r"),
                                         window.columns.Position("x", "s")},
                                        in_block)),
      greatest ? integers ? "-128" : "-inf" : "0");
  ExpressionText text;
  for (size_t d = 0; d < out.size(); ++d) text.Index(out[d], shape[d]);
  text.Index("r", window.rows.taps);
  text.Index("s", window.columns.taps);
  text.Tensor(
      "X", dtype,
      layout.Order<int64_t>({n}, {c / layout.block},
                            {window.rows.image, window.columns.image}, block));
  if (greatest) {
    const std::string value = absl::StrCat("max(r,s) ", x);
    if (!integers) {
      text.Stage("Y", dtype, shape, out, value);
      return text.Text();
    }
    text.Stage("M", "i32", shape, out, value);
    text.Stage("Y", dtype, shape, out,
               absl::StrCat("i8(", Element("M", out), ")"));
    return text.Text();
  }
  const bool varies = window.padded && arguments.Word("count") == "image";
  const std::string fraction =
      Real(1.0 / static_cast<double>(window.rows.taps * window.columns.taps));
  if (!integers && !varies) {
    text.Stage("Y", dtype, shape, out,
               absl::StrCat("sum(r,s) ", x, " * ", fraction));
    return text.Text();
  }
  text.Stage("S", integers ? "i32" : "f32", shape, out,
             absl::StrCat("sum(r,s) ", x));
  std::string mean = Element("S", out);
  if (integers) mean = absl::StrCat("f32(", mean, ")");
  mean = varies ? absl::StrCat(mean, " / f32(", Inside(window.rows, "y"), " * ",
                               Inside(window.columns, "x"), ")")
                : absl::StrCat(mean, " * ", fraction);
  // The inner f32() rounds before the halves are looked at.
  if (integers) mean = absl::StrCat("i8(round(f32(", mean, ")))");
  text.Stage("Y", dtype, shape, out, mean);
  return text.Text();
}

}  // namespace

Op Pool2dOp() {
  Op op = {
      .name = "pool2d",
      .help =
          "greatest or mean element of every window; i8 means are rounded "
          "to nearest even",
      .parameters = {{.name = "n", .help = "images"},
                     {.name = "h", .help = "input rows"},
                     {.name = "w", .help = "input columns"},
                     {.name = "c", .help = "channels"},
                     {.name = "kh",
                      .help = "window rows; for the global kinds all",
                      .default_value = "0",
                      .min = 0},
                     {.name = "kw",
                      .help = "window columns; for the global kinds all",
                      .default_value = "0",
                      .min = 0}},
      .expression = Expression,
      .samples = {
          "pool2d(n=1,h=14,w=14,c=32,kh=2,kw=2,stride=2)",
          "pool2d(n=2,h=9,w=11,c=21,kh=3,kw=3,stride=2,pad=1)",
          "pool2d(n=1,h=9,w=11,c=21,kh=3,kw=2,pad=1,kind=avg)",
          "pool2d(n=1,h=9,w=11,c=21,kh=3,kw=2,pad=1,kind=avg,count=window)",
          "pool2d(n=2,h=7,w=5,c=19,kind=global_avg)",
          "pool2d(n=2,h=7,w=5,c=3,kind=global_max,layout=NCHW)",
          "pool2d(n=1,h=8,w=20,c=3,kh=2,kw=2,stride=2,kind=avg,layout=NCHW)",
          "pool2d(n=1,h=7,w=6,c=16,kh=3,kw=3,layout=NCHWc,block=8,"
          "stride_w=2,pad_top=1)",
          "pool2d(n=1,h=7,w=9,c=18,kh=3,kw=3,pad=1,dtype=f16)",
          "pool2d(n=1,h=7,w=9,c=18,kh=3,kw=3,kind=avg,dtype=bf16)",
          "pool2d(n=1,h=7,w=9,c=18,kh=3,kw=3,pad=1,dtype=i8)",
          "pool2d(n=1,h=7,w=9,c=18,kh=2,kw=2,kind=avg,dtype=i8)",
          "pool2d(n=1,h=1,w=1,c=1,kh=1,kw=1)"}};
  AppendParameters(op, WindowParameters(/*dilation=*/false));
  AppendParameters(
      op, {WordParameter("kind", "what becomes of a window", "max",
                         {"max", "avg", "global_max", "global_avg"}),
           WordParameter("count",
                         "what a mean divides by: the window's elements that "
                         "lie in the image, or all of the window",
                         "image", {"image", "window"})});
  AppendParameters(
      op, LayoutParameters(
              "of the images; NCHWc has blocks of channels innermost"));
  AppendParameters(op, {DTypeParameter(/*integers=*/true)});
  AppendParameters(op, AxisParameters(/*dilation=*/false));
  return op;
}

}  // namespace regatta
