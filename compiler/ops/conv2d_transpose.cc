#include "compiler/ops/conv2d_transpose.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ops/epilogue.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/image_layout.h"
#include "compiler/ops/op_types.h"
#include "compiler/ops/window.h"

namespace regatta {
namespace {

using Strings = std::vector<std::string>;
using Extents = std::vector<int64_t>;

// One axis of the image, split into phases.
struct PhaseAxis {
  std::string out, group, phase, tap;  // names: y q f t
  int64_t image, taps, stride, outputs;
  int64_t first;   // input position of group 0, tap 0
  int64_t skip;    // elements of phase 0.. before the first output
  int64_t groups;  // extent of `group`
  int64_t steps;   // extent of `tap`

  bool HasPhases() const { return stride > 1; }
  bool IsCut() const { return skip > 0 || outputs != groups * stride; }
  std::string InputPosition() const {
    return absl::StrCat(group, "+", first, "-", tap);
  }
  bool InputIsPadded() const {
    return first - (steps - 1) < 0 || groups - 1 + first >= image;
  }
  std::string KernelPosition() const {
    return HasPhases() ? absl::StrCat(phase, "+", stride, "*", tap) : tap;
  }
  bool KernelIsPadded() const { return taps % stride != 0; }
  // Subscripts of the split image at output `out`.
  Strings Split() const {
    const std::string at = absl::StrCat("(", out, "+", skip, ")");
    if (!HasPhases()) return {at};
    return {absl::StrCat(at, "/", stride), absl::StrCat(at, "%", stride)};
  }
  Strings Names() const {
    return HasPhases() ? Strings{group, phase} : Strings{group};
  }
  Extents Shape() const {
    return HasPhases() ? Extents{groups, stride} : Extents{groups};
  }
};

struct AxisWords {
  const char *out, *group, *phase, *tap;
  const char *image, *kernel, *stride, *before, *after;
};
constexpr AxisWords kRows = {"y",  "q",        "f",       "t",         "h",
                             "kh", "stride_h", "pad_top", "pad_bottom"};
constexpr AxisWords kColumns = {"x",  "u",        "g",        "v",        "w",
                                "kw", "stride_w", "pad_left", "pad_right"};

absl::StatusOr<PhaseAxis> AxisOf(const OpArguments& arguments,
                                 const AxisWords& words) {
  PhaseAxis axis{.out = words.out,
                 .group = words.group,
                 .phase = words.phase,
                 .tap = words.tap,
                 .image = arguments.Int(words.image),
                 .taps = arguments.Int(words.kernel),
                 .stride = arguments.Int(words.stride)};
  const int64_t before = arguments.Int(words.before);
  const int64_t extra = arguments.Int("out_pad");
  axis.outputs = (axis.image - 1) * axis.stride + axis.taps + extra - before -
                 arguments.Int(words.after);
  if (extra >= axis.stride && extra > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "out_pad=", extra, " must be less than the stride of ", axis.stride));
  }
  if (axis.outputs < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the padding leaves nothing of the ",
                     axis.outputs + before + arguments.Int(words.after),
                     " elements that ", words.image, "=", axis.image, " and ",
                     words.kernel, "=", axis.taps, " give"));
  }
  axis.first = before / axis.stride;
  axis.skip = before % axis.stride;
  axis.groups = (axis.outputs + axis.skip + axis.stride - 1) / axis.stride;
  axis.steps = (axis.taps + axis.stride - 1) / axis.stride;
  return axis;
}

template <typename T>
std::vector<T> Joined(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string Padded(const std::string& element, bool padded) {
  return padded ? absl::StrCat("pad(", element, ", 0)") : element;
}

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const ImageLayout layout = LayoutOf(arguments);
  ASSIGN_OR_RETURN(const PhaseAxis rows, AxisOf(arguments, kRows));
  ASSIGN_OR_RETURN(const PhaseAxis columns, AxisOf(arguments, kColumns));
  const int64_t n = arguments.Int("n"), ci = arguments.Int("ci"),
                co = arguments.Int("co"), block = layout.block;
  RETURN_IF_ERROR(CheckBlocks(layout, "input channels", ci));
  RETURN_IF_ERROR(CheckBlocks(layout, "output channels", co));
  const bool blocked = layout.Blocked();
  const std::string& dtype = arguments.Word("dtype");
  ExpressionText text;
  text.Index("n", n);
  for (const PhaseAxis* axis : {&rows, &columns}) {
    text.Index(axis->group, axis->groups);
    if (axis->HasPhases()) text.Index(axis->phase, axis->stride);
    text.Index(axis->tap, axis->steps);
  }
  text.Index("c", ci / block);
  text.Index("o", co / block);
  if (blocked) {
    text.Index("cc", block);
    text.Index("oc", block);
  }
  const Strings c_inner = blocked ? Strings{"cc"} : Strings{};
  const Strings o_inner = blocked ? Strings{"oc"} : Strings{};
  const Extents in_block = blocked ? Extents{block} : Extents{};
  text.Tensor("X", dtype,
              layout.Order<int64_t>({n}, {ci / block},
                                    {rows.image, columns.image}, in_block));
  const Strings taps = {rows.KernelPosition(), columns.KernelPosition()};
  const Extents tap_extents = {rows.taps, columns.taps};
  Strings kernel =
      Joined(Joined<std::string>({"o", "c"}, taps), Joined(c_inner, o_inner));
  Extents kernel_shape = Joined(Joined({co / block, ci / block}, tap_extents),
                                Joined(in_block, in_block));
  if (layout.kind == ImageLayout::Kind::kNHWC) {
    kernel = Joined<std::string>(taps, {"c", "o"});
    kernel_shape = Joined<int64_t>(tap_extents, {ci, co});
  }
  text.Tensor("W", dtype, kernel_shape);
  const std::string x =
      Padded(Element("X", layout.Order<std::string>(
                              {"n"}, {"c"},
                              {rows.InputPosition(), columns.InputPosition()},
                              c_inner)),
             rows.InputIsPadded() || columns.InputIsPadded());
  const std::string weight = Padded(
      Element("W", kernel), rows.KernelIsPadded() || columns.KernelIsPadded());
  const Strings summed = Joined<std::string>({"t", "v", "c"}, c_inner);
  const bool cut = rows.IsCut() || columns.IsCut();
  SumText sum{
      .output = cut ? "T" : "Y",
      .indices = layout.Order<std::string>(
          {"n"}, {"o"}, Joined(rows.Names(), columns.Names()), o_inner),
      .shape = layout.Order<int64_t>(
          {n}, {co / block}, Joined(rows.Shape(), columns.Shape()), in_block),
      .value = absl::StrCat("sum(", absl::StrJoin(summed, ","), ") ", x, " * ",
                            weight),
      .channel = blocked ? absl::StrCat("o*", block, "+oc") : "o",
      .channels = co};
  ASSIGN_OR_RETURN(const std::string out, AddSum(arguments, sum, text));
  if (!cut) return text.Text();
  text.Index("y", rows.outputs);
  text.Index("x", columns.outputs);
  text.Stage("Y", out,
             layout.Order<int64_t>({n}, {co / block},
                                   {rows.outputs, columns.outputs}, in_block),
             layout.Order<std::string>({"n"}, {"o"}, {"y", "x"}, o_inner),
             Element("T", layout.Order<std::string>(
                              {"n"}, {"o"},
                              Joined(rows.Split(), columns.Split()), o_inner)));
  return text.Text();
}

}  // namespace

Op Conv2dTransposeOp() {
  Op op = {
      .name = "conv2d_transpose",
      .help =
          "transpose of a 2-D convolution: (h-1)*stride + kh - 2*pad + "
          "out_pad rows from h rows, and columns alike; a result that "
          "needs no cutting has rows and columns split by the stride",
      .parameters = {{.name = "n", .help = "images"},
                     {.name = "h", .help = "input rows"},
                     {.name = "w", .help = "input columns"},
                     {.name = "ci", .help = "input channels"},
                     {.name = "co", .help = "output channels"},
                     {.name = "kh", .help = "kernel rows"},
                     {.name = "kw", .help = "kernel columns"}},
      .expression = Expression,
      .samples = {
          "conv2d_transpose(n=1,h=7,w=7,ci=16,co=16,kh=4,kw=4,stride=2,pad=1)",
          "conv2d_transpose(n=2,h=5,w=4,ci=3,co=5,kh=3,kw=3)",
          "conv2d_transpose(n=1,h=5,w=6,ci=5,co=19,kh=2,kw=2,stride=2)",
          "conv2d_transpose(n=1,h=5,w=6,ci=5,co=7,kh=3,kw=5,stride=2,pad=1,"
          "out_pad=1)",
          "conv2d_transpose(n=1,h=4,w=5,ci=3,co=9,kh=3,kw=2,stride=3,"
          "bias=yes,activation=relu)",
          "conv2d_transpose(n=1,h=4,w=5,ci=3,co=9,kh=3,kw=4,stride=2,pad=2,"
          "layout=NCHW)",
          "conv2d_transpose(n=1,h=4,w=5,ci=8,co=12,kh=4,kw=4,stride=2,pad=1,"
          "layout=NCHWc,block=4)",
          "conv2d_transpose(n=1,h=5,w=6,ci=5,co=7,kh=3,kw=3,stride_h=2,"
          "pad_top=1)",
          "conv2d_transpose(n=1,h=1,w=1,ci=1,co=1,kh=1,kw=1)",
          "conv2d_transpose(n=1,h=5,w=6,ci=5,co=7,kh=3,kw=3,stride=2,pad=1,"
          "dtype=f16)",
          "conv2d_transpose(n=1,h=5,w=6,ci=5,co=7,kh=3,kw=3,stride=2,"
          "dtype=bf16,bias=yes)",
          "conv2d_transpose(n=1,h=5,w=6,ci=5,co=7,kh=3,kw=3,stride=2,pad=1,"
          "dtype=i8)",
          "conv2d_transpose(n=1,h=5,w=6,ci=5,co=7,kh=4,kw=4,stride=2,pad=1,"
          "dtype=i8,out_dtype=i8,bias=yes)"}};
  AppendParameters(op, WindowParameters(/*dilation=*/false));
  AppendParameters(
      op, {{.name = "out_pad",
            .help = "rows and columns added at the end, less than the stride",
            .default_value = "0",
            .min = 0,
            .max = 1 << 20}});
  AppendParameters(
      op, LayoutParameters("NHWC with weights KhKwCiCo, NCHW with CoCiKhKw, or "
                           "NCHWc with blocks of "
                           "channels innermost: weights Co/b,Ci/b,Kh,Kw,b,b"));
  AppendParameters(
      op, {DTypeParameter(/*integers=*/true), ScaledOutDTypeParameter(),
           BiasParameter("no"), ActivationParameter()});
  AppendParameters(op, AxisParameters(/*dilation=*/false));
  return op;
}

}  // namespace regatta
