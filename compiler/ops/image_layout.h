// How an image batch lies in memory: NHWC, NCHW, or NCHWc, where blocks of
// channels lie innermost: [n, c/block, h, w, block].
#ifndef REGATTA_COMPILER_OPS_IMAGE_LAYOUT_H_
#define REGATTA_COMPILER_OPS_IMAGE_LAYOUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ops/op.h"

namespace regatta {

std::vector<OpParameter> LayoutParameters(std::string layout_help);

struct ImageLayout {
  enum class Kind { kNHWC, kNCHW, kNCHWc } kind = Kind::kNHWC;
  int64_t block = 1;  // of kNCHWc

  bool Blocked() const { return kind == Kind::kNCHWc; }
  // The dimensions in their order, each a few of them. `outer` and `inner` are
  // those of the channels; for kNCHWc `outer` counts blocks and `inner` is
  // within one, otherwise `inner` follows `outer`.
  template <typename T>
  std::vector<T> Order(std::vector<T> batch, std::vector<T> outer,
                       std::vector<T> image, std::vector<T> inner) const {
    std::vector<T> all = std::move(batch);
    const auto append = [&](const std::vector<T>& some) {
      all.insert(all.end(), some.begin(), some.end());
    };
    if (kind == Kind::kNHWC) append(image);
    append(outer);
    if (kind == Kind::kNCHW) append(inner);
    if (kind != Kind::kNHWC) append(image);
    if (kind != Kind::kNCHW) append(inner);
    return all;
  }
};

// From `layout` and `block`.
ImageLayout LayoutOf(const OpArguments& arguments);

// InvalidArgument naming `what` when blocks of the layout do not divide
// `channels`.
absl::Status CheckBlocks(const ImageLayout& layout, std::string_view what,
                         int64_t channels);

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_IMAGE_LAYOUT_H_
