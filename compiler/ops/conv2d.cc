#include "compiler/ops/conv2d.h"

#include "absl/strings/str_cat.h"
#include "compiler/ops/convolution.h"
#include "compiler/ops/epilogue.h"
#include "compiler/ops/image_layout.h"
#include "compiler/ops/op_types.h"
#include "compiler/ops/window.h"

namespace regatta {
namespace {

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const ConvolutionChannels channels = {.ci = arguments.Int("ci"),
                                        .co = arguments.Int("co"),
                                        .groups = arguments.Int("groups")};
  if (channels.ci % channels.groups != 0 ||
      channels.co % channels.groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "groups=", channels.groups, " does not divide ci=", channels.ci,
        " and co=", channels.co));
  }
  return ConvolutionExpression(arguments, channels);
}

}  // namespace

Op Conv2dOp() {
  Op op = {
      .name = "conv2d",
      .help =
          "2-D convolution of an image batch with co kernels of kh x kw x "
          "ci/groups",
      .parameters = {{.name = "n", .help = "images"},
                     {.name = "h", .help = "input rows"},
                     {.name = "w", .help = "input columns"},
                     {.name = "ci", .help = "input channels"},
                     {.name = "co", .help = "output channels"},
                     {.name = "kh", .help = "kernel rows"},
                     {.name = "kw", .help = "kernel columns"}},
      .expression = Expression,
      .samples = {
          "conv2d(n=1,h=14,w=14,ci=16,co=16,kh=3,kw=3,pad=1)",
          "conv2d(n=2,h=9,w=11,ci=3,co=5,kh=3,kw=3)",
          "conv2d(n=1,h=13,w=10,ci=7,co=9,kh=3,kw=5,stride=2,pad=2)",
          "conv2d(n=1,h=12,w=12,ci=4,co=6,kh=3,kw=3,pad=2,dilation=2)",
          "conv2d(n=1,h=8,w=8,ci=33,co=17,kh=1,kw=1)",
          "conv2d(n=1,h=1,w=1,ci=1,co=1,kh=1,kw=1)",
          "conv2d(n=2,h=7,w=6,ci=5,co=4,kh=3,kw=2,stride=2,pad=1,layout=NCHW)",
          "conv2d(n=1,h=8,w=8,ci=4,co=8,kh=3,kw=3,pad=1,dtype=i8)",
          "conv2d(n=1,h=7,w=9,ci=6,co=10,kh=3,kw=3,pad=1,groups=2,bias=yes,"
          "activation=relu)",
          "conv2d(n=1,h=8,w=9,ci=6,co=9,kh=3,kw=3,layout=NCHW,groups=3,"
          "stride_h=2,dilation_w=2,pad_bottom=1,pad_left=2)",
          "conv2d(n=1,h=6,w=5,ci=16,co=24,kh=3,kw=3,pad=1,layout=NCHWc,"
          "block=8)",
          "conv2d(n=1,h=6,w=5,ci=16,co=32,kh=3,kw=1,layout=NCHWc,block=4,"
          "dtype=f16,groups=2,bias=yes,activation=sigmoid)",
          "conv2d(n=2,h=5,w=7,ci=9,co=11,kh=3,kw=3,pad=1,dtype=bf16,bias=yes,"
          "activation=gelu)",
          "conv2d(n=1,h=8,w=7,ci=5,co=7,kh=3,kw=3,dtype=i8,out_dtype=i8,"
          "bias=yes,activation=relu)"}};
  AppendParameters(op, WindowParameters(/*dilation=*/true));
  AppendParameters(
      op, LayoutParameters("NHWC with weights KhKwCiCo, NCHW with CoCiKhKw, or "
                           "NCHWc with blocks of "
                           "channels innermost: weights Co/b,Ci/b,Kh,Kw,b,b"));
  AppendParameters(op,
                   {DTypeParameter(/*integers=*/true),
                    ScaledOutDTypeParameter(),
                    {.name = "groups",
                     .help = "each of ci/groups inputs and co/groups outputs",
                     .default_value = "1",
                     .max = 1 << 20},
                    BiasParameter("no"),
                    ActivationParameter()});
  AppendParameters(op, AxisParameters(/*dilation=*/true));
  return op;
}

}  // namespace regatta
