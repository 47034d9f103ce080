#include "compiler/space/rules/device/device_nest.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/loop_nest.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;

namespace {

constexpr size_t kGridDimensions = 3;
constexpr int64_t kCommonMaxGroup = 256;
// What OpenCL promises of every full device.
constexpr int64_t kCommonLocalBytes = 32 << 10;
// Where a target does not say: beyond it every compiler spills.
constexpr int64_t kCommonRegisters = 255;

}  // namespace

std::vector<GridAxis> GridAxes(const Workload& workload, const Stage& stage,
                               const std::map<int, int64_t>& tiled) {
  std::vector<GridAxis> axes;
  for (int index : stage.indices) {
    const auto it = tiled.find(index);
    axes.push_back({index, it == tiled.end() ? workload.indices[index].extent
                                             : it->second});
  }
  return axes;
}

StmtPtr OverGrid(
    LoopBuilder& out, std::vector<GridAxis> axes,
    const std::array<int64_t, 2>& threads,
    const std::function<StmtPtr(const std::map<int, Affine>& piece,
                                const std::array<Affine, 2>& thread)>& body) {
  std::sort(axes.begin(), axes.end(), [](const GridAxis& a, const GridAxis& b) {
    return std::pair(-a.trips, a.index) < std::pair(-b.trips, b.index);
  });
  std::map<int, Affine> piece;
  std::vector<std::pair<int, int64_t>> groups;  // loop ids, extents
  std::vector<GridAxis> serial;
  for (const GridAxis& axis : axes) {
    if (groups.size() < kGridDimensions) {
      groups.emplace_back(out.NewVar(), axis.trips);
      piece[axis.index] = Affine::Var(groups.back().first);
    } else {
      serial.push_back(axis);
    }
  }
  if (groups.empty()) groups.emplace_back(out.NewVar(), 1);
  const std::array<int, 2> thread = {out.NewVar(), out.NewVar()};
  const std::function<StmtPtr(size_t)> inside = [&](size_t depth) {
    if (depth == serial.size()) {
      return body(piece, {Affine::Var(thread[0]), Affine::Var(thread[1])});
    }
    return MakeLoop(out, serial[depth].trips, LoopKind::kSerial,
                    [&](const Affine& var) {
                      piece[serial[depth].index] = var;
                      return inside(depth + 1);
                    });
  };
  StmtPtr nest = inside(0);
  for (int d : {0, 1}) {
    nest = loop::For(thread[d], threads[d], LoopKind::kThread, std::move(nest));
  }
  for (const auto& [var, extent] : groups) {
    nest = loop::For(var, extent, LoopKind::kGroup, std::move(nest));
  }
  return nest;
}

StmtPtr ForPiece(
    const Affine& piece, int64_t extent, int64_t size,
    const std::function<StmtPtr(const Affine& start, int64_t extent)>& body) {
  const int64_t whole = extent / size, rest = extent % size;
  std::vector<StmtPtr> parts;
  if (whole > 0) {
    parts.push_back(loop::If({{piece, whole}}, body(piece * size, size)));
  }
  if (rest > 0) {
    parts.push_back(loop::If({{piece + -whole, 1}}, body(piece * size, rest)));
  }
  return loop::Block(std::move(parts));
}

loop::ValuePtr WithGuards(const loop::ValuePtr& value,
                          const std::vector<loop::Guard>& guards) {
  auto guarded = std::make_shared<loop::Value>(*value);
  guarded->guards.insert(guarded->guards.end(), guards.begin(), guards.end());
  return guarded;
}

int64_t MaxGroup(const Target& target) {
  return target.max_group > 0 ? target.max_group : kCommonMaxGroup;
}

std::optional<std::string> GroupViolation(const Target& target,
                                          int64_t threads) {
  if (threads <= MaxGroup(target)) return std::nullopt;
  return absl::StrCat(threads, " work-items of at most ", MaxGroup(target));
}

std::optional<std::string> LocalViolation(const Target& target, int64_t bytes) {
  const int64_t most =
      target.local_bytes > 0 ? target.local_bytes : kCommonLocalBytes;
  if (bytes <= most) return std::nullopt;
  return absl::StrCat(bytes, " bytes of ", most);
}

std::optional<std::string> RegisterViolation(const Target& target,
                                             int64_t values) {
  const int64_t most =
      target.max_registers > 0 ? target.max_registers : kCommonRegisters;
  if (values <= most) return std::nullopt;
  return absl::StrCat(values, " of ", most, " registers");
}

std::optional<std::string> ImageViolation(const Target& target, int64_t width,
                                          int64_t height) {
  if (width <= target.image_width && height <= target.image_height) {
    return std::nullopt;
  }
  return absl::StrCat(width, " x ", height, " pixels of at most ",
                      target.image_width, " x ", target.image_height);
}

}  // namespace regatta
