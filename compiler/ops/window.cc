#include "compiler/ops/window.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

constexpr int64_t kMaxStep = 1 << 20;

OpParameter Step(std::string name, std::string help, std::string value,
                 int64_t min) {
  return {.name = std::move(name),
          .help = std::move(help),
          .default_value = std::move(value),
          .min = min,
          .max = kMaxStep};
}

// Sets `outputs`; InvalidArgument when the window does not fit.
absl::Status CountOutputs(std::string_view image, std::string_view kernel,
                          WindowAxis& axis) {
  const int64_t padded = axis.image + axis.before + axis.after;
  const int64_t window = (axis.taps - 1) * axis.dilation + 1;
  if (window > padded) {
    const std::string pad = axis.before == axis.after
                                ? absl::StrCat(axis.before)
                                : absl::StrCat(axis.before, "+", axis.after);
    return absl::InvalidArgumentError(absl::StrCat(
        "the window of ", window, " (", std::string(kernel), "=", axis.taps,
        ", dilation=", axis.dilation, ") is larger than the padded input of ",
        padded, " (", std::string(image), "=", axis.image, ", pad=", pad, ")"));
  }
  axis.outputs = (padded - window) / axis.stride + 1;
  return absl::OkStatus();
}

}  // namespace

std::string WindowAxis::Position(std::string_view window,
                                 std::string_view tap) const {
  return absl::StrCat(std::string(window), "*", stride, "+", std::string(tap),
                      "*", dilation, "-", before);
}

std::string Window::Read(const std::string& element,
                         std::string_view outside) const {
  if (!padded) return element;
  return absl::StrCat("pad(", element, ", ", std::string(outside), ")");
}

std::vector<OpParameter> WindowParameters(bool dilation) {
  std::vector<OpParameter> parameters = {
      Step("stride", "distance between windows", "1", 1),
      Step("pad", "elements around the image on each side", "0", 0)};
  if (dilation) {
    parameters.push_back(
        Step("dilation", "distance between taps of a window", "1", 1));
  }
  return parameters;
}

std::vector<OpParameter> AxisParameters(bool dilation) {
  std::vector<OpParameter> parameters = {
      Step("stride_h", "stride over rows", "stride", 1),
      Step("stride_w", "stride over columns", "stride", 1)};
  if (dilation) {
    parameters.push_back(
        Step("dilation_h", "dilation over rows", "dilation", 1));
    parameters.push_back(
        Step("dilation_w", "dilation over columns", "dilation", 1));
  }
  for (const char* side : {"top", "bottom", "left", "right"}) {
    parameters.push_back(Step(absl::StrCat("pad_", side),
                              absl::StrCat("padding at the ", side), "pad", 0));
  }
  return parameters;
}

absl::StatusOr<Window> WindowOf(const OpArguments& arguments) {
  const auto dilation = [&](std::string_view name) {
    return arguments.Has(name) ? arguments.Int(name) : 1;
  };
  Window window;
  window.rows = {.image = arguments.Int("h"),
                 .taps = arguments.Int("kh"),
                 .stride = arguments.Int("stride_h"),
                 .dilation = dilation("dilation_h"),
                 .before = arguments.Int("pad_top"),
                 .after = arguments.Int("pad_bottom")};
  window.columns = {.image = arguments.Int("w"),
                    .taps = arguments.Int("kw"),
                    .stride = arguments.Int("stride_w"),
                    .dilation = dilation("dilation_w"),
                    .before = arguments.Int("pad_left"),
                    .after = arguments.Int("pad_right")};
  RETURN_IF_ERROR(CountOutputs("h", "kh", window.rows));
  RETURN_IF_ERROR(CountOutputs("w", "kw", window.columns));
  window.padded = window.rows.before > 0 || window.rows.after > 0 ||
                  window.columns.before > 0 || window.columns.after > 0;
  return window;
}

}  // namespace regatta
