#include "compiler/ops/convolution.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ops/epilogue.h"
#include "compiler/ops/expression_text.h"
#include "compiler/ops/image_layout.h"
#include "compiler/ops/window.h"

namespace regatta {
namespace {

using Strings = std::vector<std::string>;

// An index and its extent.
struct Axis {
  std::string name;
  int64_t extent;
};

Strings NamesOf(const std::vector<Axis>& axes) {
  Strings names;
  for (const Axis& axis : axes) names.push_back(axis.name);
  return names;
}

std::vector<int64_t> ExtentsOf(const std::vector<Axis>& axes) {
  std::vector<int64_t> extents;
  for (const Axis& axis : axes) extents.push_back(axis.extent);
  return extents;
}

// The indices of the channels, as lists of none or one that are put together.
// `outer` and `inner` are what ImageLayout::Order means by it.
struct ChannelAxes {
  std::vector<Axis> g_outer, g_inner;  // groups; inner: in blocks
  std::vector<Axis> c_outer, c_inner;  // a group's inputs
  std::vector<Axis> o_outer, o_inner;  // a group's outputs
  std::string channel;                 // of the output
  std::string x_outer;                 // subscripts of the input's channel
  std::string x_inner;                 // kNCHWc only
};

ChannelAxes DepthwiseBlocks(const ConvolutionChannels& k, int64_t block) {
  return {.g_outer = {{"g", k.groups / block}},
          .g_inner = {{"gc", block}},
          .channel = absl::StrCat("g*", block, "+gc"),
          .x_outer = "g",
          .x_inner = "gc"};
}

ChannelAxes Blocks(const ConvolutionChannels& k, int64_t block) {
  const int64_t inputs = k.ci / k.groups / block;
  ChannelAxes axes{.c_outer = {{"c", inputs}},
                   .c_inner = {{"cc", block}},
                   .o_outer = {{"o", k.co / k.groups / block}},
                   .o_inner = {{"oc", block}},
                   .channel = absl::StrCat("o*", block, "+oc"),
                   .x_outer = "c",
                   .x_inner = "cc"};
  if (k.groups > 1) {
    axes.g_outer = {{"g", k.groups}};
    axes.channel = absl::StrCat("g*", k.co / k.groups, "+", axes.channel);
    axes.x_outer = absl::StrCat("g*", inputs, "+c");
  }
  return axes;
}

ChannelAxes Plain(const ConvolutionChannels& k) {
  const int64_t inputs = k.ci / k.groups, outputs = k.co / k.groups;
  if (k.groups == 1) {
    return {.c_outer = {{"c", inputs}},
            .o_inner = {{"o", outputs}},
            .channel = "o",
            .x_outer = "c"};
  }
  ChannelAxes axes{
      .g_outer = {{"g", k.groups}}, .channel = "g", .x_outer = "g"};
  if (inputs > 1) {
    axes.c_outer = {{"c", inputs}};
    axes.x_outer = absl::StrCat("g*", inputs, "+c");
  }
  if (outputs > 1) {
    axes.o_inner = {{"o", outputs}};
    axes.channel = absl::StrCat("g*", outputs, "+o");
  }
  return axes;
}

absl::StatusOr<ChannelAxes> AxesOf(const ConvolutionChannels& k,
                                   const ImageLayout& layout) {
  if (!layout.Blocked()) return Plain(k);
  if (k.groups == k.ci && k.groups == k.co && k.groups > 1) {
    RETURN_IF_ERROR(CheckBlocks(layout, "channels", k.groups));
    return DepthwiseBlocks(k, layout.block);
  }
  const char* each = k.groups > 1 ? " channels of a group" : " channels";
  RETURN_IF_ERROR(
      CheckBlocks(layout, absl::StrCat("input", each), k.ci / k.groups));
  RETURN_IF_ERROR(
      CheckBlocks(layout, absl::StrCat("output", each), k.co / k.groups));
  return Blocks(k, layout.block);
}

std::vector<Axis> Joined(std::initializer_list<std::vector<Axis>> lists) {
  std::vector<Axis> all;
  for (const std::vector<Axis>& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

}  // namespace

absl::StatusOr<std::string> ConvolutionExpression(
    const OpArguments& arguments, const ConvolutionChannels& k) {
  const ImageLayout layout = LayoutOf(arguments);
  ASSIGN_OR_RETURN(const Window window, WindowOf(arguments));
  ASSIGN_OR_RETURN(const ChannelAxes axes, AxesOf(k, layout));
  const int64_t n = arguments.Int("n");
  const std::vector<Axis> taps = {{"r", window.rows.taps},
                                  {"s", window.columns.taps}};
  const std::vector<Axis> batch = {{"n", n}};
  const std::vector<Axis> image = {{"y", window.rows.outputs},
                                   {"x", window.columns.outputs}};
  const std::vector<Axis> out =
      layout.Order<Axis>(batch, Joined({axes.g_outer, axes.o_outer}), image,
                         Joined({axes.g_inner, axes.o_inner}));
  const bool last = layout.kind == ImageLayout::Kind::kNHWC;
  const std::vector<Axis> weights =
      last ? Joined({taps, axes.c_outer, axes.g_outer, axes.o_inner})
      : layout.Blocked()
          ? Joined({axes.g_outer, axes.o_outer, axes.c_outer, taps,
                    axes.c_inner, axes.g_inner, axes.o_inner})
          : Joined({axes.g_outer, axes.o_inner, axes.c_outer, taps});
  const std::vector<Axis> summed =
      last ? Joined({taps, axes.c_outer})
           : Joined({axes.c_outer, taps, axes.c_inner});
  const std::string x = Element(
      "X",
      layout.Order<std::string>(
          {"n"}, {axes.x_outer},
          {window.rows.Position("y", "r"), window.columns.Position("x", "s")},
          axes.x_inner.empty() ? Strings{} : Strings{axes.x_inner}));
  ExpressionText text;
  for (const Axis& axis : Joined({out, summed})) {
    text.Index(axis.name, axis.extent);
  }
  text.Tensor("X", arguments.Word("dtype"),
              layout.Order<int64_t>({n}, {k.ci / layout.block},
                                    {window.rows.image, window.columns.image},
                                    layout.Blocked()
                                        ? std::vector<int64_t>{layout.block}
                                        : std::vector<int64_t>{}));
  text.Tensor("W", arguments.Word("dtype"), ExtentsOf(weights));
  RETURN_IF_ERROR(
      AddSum(arguments,
             {.output = "Y",
              .indices = NamesOf(out),
              .shape = ExtentsOf(out),
              .value = absl::StrCat("sum(", absl::StrJoin(NamesOf(summed), ","),
                                    ") ", window.Read(x, "0"), " * ",
                                    Element("W", NamesOf(weights))),
              .channel = axes.channel,
              .channels = k.co},
             text)
          .status());
  return text.Text();
}

}  // namespace regatta
