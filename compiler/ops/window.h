// Windows that move over an image: parameters, positions and output sizes,
// shared by convolutions and pooling.
#ifndef REGATTA_COMPILER_OPS_WINDOW_H_
#define REGATTA_COMPILER_OPS_WINDOW_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/op.h"

namespace regatta {

// One axis of an image and of the windows over it.
struct WindowAxis {
  int64_t image = 1;              // elements
  int64_t taps = 1;               // of the window
  int64_t stride = 1;             // between windows
  int64_t dilation = 1;           // between taps
  int64_t before = 0, after = 0;  // padding
  int64_t outputs = 1;            // windows that fit
  // The subscript of tap `tap` of window `window`: "y*2+r*3-1".
  std::string Position(std::string_view window, std::string_view tap) const;
};

struct Window {
  WindowAxis rows, columns;
  bool padded = false;
  // `element`, an access at positions of both axes, with `outside` for what
  // the padding holds.
  std::string Read(const std::string& element, std::string_view outside) const;
};

// stride, pad and where asked dilation, each for both axes; and, with these as
// defaults, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_bottom,
// pad_left, pad_right. Two lists, so that the second can stand last in a call.
std::vector<OpParameter> WindowParameters(bool dilation);
std::vector<OpParameter> AxisParameters(bool dilation);

// From the parameters above and h, w, kh, kw. InvalidArgument when a window
// does not fit into the padded image.
absl::StatusOr<Window> WindowOf(const OpArguments& arguments);

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_WINDOW_H_
