#include "compiler/ops/conv2d.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "compiler/ops/op_types.h"

namespace regatta {
namespace {

// Output size along one axis; InvalidArgument when the window does not fit.
absl::StatusOr<int64_t> OutputSize(const OpArguments& arguments,
                                   std::string_view image,
                                   std::string_view kernel) {
  const int64_t padded = arguments.Int(image) + 2 * arguments.Int("pad");
  const int64_t window =
      (arguments.Int(kernel) - 1) * arguments.Int("dilation") + 1;
  if (window > padded) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the window of ", window, " (", std::string(kernel), "=",
        arguments.Int(kernel), ", dilation=", arguments.Int("dilation"),
        ") is larger than the padded input of ", padded, " (",
        std::string(image), "=", arguments.Int(image),
        ", pad=", arguments.Int("pad"), ")"));
  }
  return (padded - window) / arguments.Int("stride") + 1;
}

// "y*2+r*3-1", with the parts that do nothing left out.
std::string Position(std::string_view out, std::string_view tap,
                     const OpArguments& arguments) {
  std::string text =
      absl::StrCat(std::string(out), "*", arguments.Int("stride"), "+",
                   std::string(tap), "*", arguments.Int("dilation"));
  if (arguments.Int("pad") > 0) {
    absl::StrAppend(&text, "-", arguments.Int("pad"));
  }
  return text;
}

absl::StatusOr<std::string> Expression(const OpArguments& arguments) {
  ASSIGN_OR_RETURN(const std::string out, OutDType(arguments));
  ASSIGN_OR_RETURN(const int64_t height, OutputSize(arguments, "h", "kh"));
  ASSIGN_OR_RETURN(const int64_t width, OutputSize(arguments, "w", "kw"));
  const bool channels_last = arguments.Word("layout") == "NHWC";
  const std::string y = Position("y", "r", arguments);
  const std::string x = Position("x", "s", arguments);
  std::string input =
      absl::Substitute(channels_last ? "X[n,$0,$1,c]" : "X[n,c,$0,$1]", y, x);
  if (arguments.Int("pad") > 0) input = absl::StrCat("pad(", input, ", 0)");
  const std::string expression = absl::Substitute(
      channels_last ? "Y[n,y,x,o] = sum(r,s,c) $0 * W[r,s,c,o]"
                    : "Y[n,o,y,x] = sum(c,r,s) $0 * W[o,c,r,s]",
      input);
  const std::string extents = absl::Substitute(
      "n=$0, y=$1, x=$2, o=$3, r=$4, s=$5, c=$6", arguments.Int("n"), height,
      width, arguments.Int("co"), arguments.Int("kh"), arguments.Int("kw"),
      arguments.Int("ci"));
  const std::string tensors = absl::Substitute(
      channels_last ? "dtype=$0, X=$0[$2,$3,$4,$5], Y=$1[$2,$6,$7,$8]"
                    : "dtype=$0, X=$0[$2,$5,$3,$4], Y=$1[$2,$8,$6,$7]",
      arguments.Word("dtype"), out, arguments.Int("n"), arguments.Int("h"),
      arguments.Int("w"), arguments.Int("ci"), height, width,
      arguments.Int("co"));
  return absl::StrCat(expression, " where ", extents, ", ", tensors);
}

OpParameter Optional(std::string name, std::string help, std::string value,
                     int64_t min) {
  return {.name = std::move(name),
          .help = std::move(help),
          .default_value = std::move(value),
          .min = min,
          .max = 1 << 20};
}

}  // namespace

Op Conv2dOp() {
  return {
      .name = "conv2d",
      .help = "2-D convolution of an image batch with ci*co kernels of kh x kw",
      .parameters =
          {{.name = "n", .help = "images"},
           {.name = "h", .help = "input rows"},
           {.name = "w", .help = "input columns"},
           {.name = "ci", .help = "input channels"},
           {.name = "co", .help = "output channels"},
           {.name = "kh", .help = "kernel rows"},
           {.name = "kw", .help = "kernel columns"},
           Optional("stride", "distance between windows", "1", 1),
           Optional("pad", "zeros around the image on each side", "0", 0),
           Optional("dilation", "distance between taps of a window", "1", 1),
           {.name = "layout",
            .help = "NHWC with weights KhKwCiCo, or NCHW with CoCiKhKw",
            .default_value = "NHWC",
            .is_integer = false,
            .words = {"NHWC", "NCHW"}},
           DTypeParameter(/*integers=*/true),
           OutDTypeParameter()},
      .expression = Expression,
      .samples = {
          "conv2d(n=1,h=14,w=14,ci=16,co=16,kh=3,kw=3,pad=1)",
          "conv2d(n=2,h=9,w=11,ci=3,co=5,kh=3,kw=3)",
          "conv2d(n=1,h=13,w=10,ci=7,co=9,kh=3,kw=5,stride=2,pad=2)",
          "conv2d(n=1,h=12,w=12,ci=4,co=6,kh=3,kw=3,pad=2,dilation=2)",
          "conv2d(n=1,h=8,w=8,ci=33,co=17,kh=1,kw=1)",
          "conv2d(n=1,h=1,w=1,ci=1,co=1,kh=1,kw=1)",
          "conv2d(n=2,h=7,w=6,ci=5,co=4,kh=3,kw=2,stride=2,pad=1,layout=NCHW)",
          "conv2d(n=1,h=8,w=8,ci=4,co=8,kh=3,kw=3,pad=1,dtype=i8)"}};
}

}  // namespace regatta
