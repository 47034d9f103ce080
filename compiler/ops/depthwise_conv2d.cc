#include "compiler/ops/depthwise_conv2d.h"

#include "absl/strings/str_cat.h"
#include "compiler/ops/convolution.h"
#include "compiler/ops/epilogue.h"
#include "compiler/ops/image_layout.h"
#include "compiler/ops/op_types.h"
#include "compiler/ops/window.h"

namespace regatta {
namespace {

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  const int64_t c = arguments.Int("c");
  if (arguments.Word("layout") == "NCHWc" && arguments.Int("block") > 1 &&
      arguments.Int("multiplier") > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("multiplier=", arguments.Int("multiplier"),
                     " does not go with layout=NCHWc: a block holds channels "
                     "with one output "
                     "each; choose another layout, or multiplier=1"));
  }
  return ConvolutionExpression(
      arguments, {.ci = c, .co = c * arguments.Int("multiplier"), .groups = c});
}

}  // namespace

Op DepthwiseConv2dOp() {
  Op op = {.name = "depthwise_conv2d",
           .help = "2-D convolution of every channel with kernels of its own",
           .parameters = {{.name = "n", .help = "images"},
                          {.name = "h", .help = "input rows"},
                          {.name = "w", .help = "input columns"},
                          {.name = "c", .help = "channels", .max = 1 << 20},
                          {.name = "kh", .help = "kernel rows"},
                          {.name = "kw", .help = "kernel columns"}},
           .expression = Expression,
           .samples = {
               "depthwise_conv2d(n=1,h=14,w=14,c=32,kh=3,kw=3,pad=1)",
               "depthwise_conv2d(n=2,h=9,w=11,c=21,kh=3,kw=3,stride=2,pad=1)",
               "depthwise_conv2d(n=1,h=9,w=8,c=5,kh=5,kw=3,multiplier=3)",
               "depthwise_conv2d(n=1,h=9,w=18,c=5,kh=3,kw=3,pad=1,layout=NCHW,"
               "bias=yes,activation=relu)",
               "depthwise_conv2d(n=1,h=7,w=6,c=24,kh=3,kw=3,pad=1,layout=NCHWc,"
               "block=8)",
               "depthwise_conv2d(n=1,h=7,w=9,c=19,kh=3,kw=3,pad=1,dtype=f16,"
               "bias=yes)",
               "depthwise_conv2d(n=1,h=7,w=9,c=19,kh=3,kw=3,dilation=2,"
               "dtype=bf16)",
               "depthwise_conv2d(n=1,h=7,w=9,c=19,kh=3,kw=3,dtype=i8,"
               "out_dtype=i8)",
               "depthwise_conv2d(n=1,h=1,w=1,c=1,kh=1,kw=1)"}};
  AppendParameters(op, WindowParameters(/*dilation=*/true));
  AppendParameters(op, {{.name = "multiplier",
                         .help = "outputs of every channel",
                         .default_value = "1",
                         .max = 1024}});
  AppendParameters(
      op,
      LayoutParameters(
          "NHWC with weights KhKwCM, NCHW with CMKhKw, or NCHWc with blocks of "
          "channels innermost: weights C/b,Kh,Kw,b"));
  AppendParameters(
      op, {DTypeParameter(/*integers=*/true), ScaledOutDTypeParameter(),
           BiasParameter("no"), ActivationParameter()});
  AppendParameters(op, AxisParameters(/*dilation=*/true));
  return op;
}

}  // namespace regatta
