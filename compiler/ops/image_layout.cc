#include "compiler/ops/image_layout.h"

#include "absl/strings/str_cat.h"
#include "compiler/ops/op_types.h"

namespace regatta {

std::vector<OpParameter> LayoutParameters(std::string layout_help) {
  return {WordParameter("layout", std::move(layout_help), "NHWC",
                        {"NHWC", "NCHW", "NCHWc"}),
          {.name = "block",
           .help = "channels of a block in the layout NCHWc",
           .default_value = "16",
           .max = 4096}};
}

ImageLayout LayoutOf(const OpArguments& arguments) {
  const std::string& word = arguments.Word("layout");
  ImageLayout layout;
  if (word == "NCHW") layout.kind = ImageLayout::Kind::kNCHW;
  if (word == "NCHWc") {
    layout.kind = ImageLayout::Kind::kNCHWc;
    layout.block = arguments.Int("block");
  }
  return layout;
}

absl::Status CheckBlocks(const ImageLayout& layout, std::string_view what,
                         int64_t channels) {
  if (channels % layout.block == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "layout=NCHWc has blocks of ", layout.block,
      " channels, which do not "
      "divide the ",
      channels, " ", std::string(what), "; choose another block or layout"));
}

}  // namespace regatta
