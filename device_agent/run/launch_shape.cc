#include "device_agent/run/launch_shape.h"

#include <cstddef>
#include <limits>

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

MaybeFailure ReadExtents(const std::vector<int64_t>& extents,
                         const std::string& entry, uint32_t* to) {
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] < 1 || extents[d] > kMost) {
      return Failed(v1::OUTCOME_COMPILE_ERROR,
                    absl::StrCat("kernel ", entry, " has an extent of ",
                                 extents[d], " in dimension ", d));
    }
    to[d] = static_cast<uint32_t>(extents[d]);
  }
  return std::nullopt;
}

}  // namespace

MaybeFailure ReadShape(const ModuleKernel& kernel, LaunchShape* shape) {
  const size_t dimensions = kernel.grid.size();
  if (dimensions == 0 || dimensions > LaunchShape::kMaxDimensions ||
      kernel.group.size() != dimensions) {
    return Failed(v1::OUTCOME_COMPILE_ERROR,
                  absl::StrCat("kernel ", kernel.entry, " has ", dimensions,
                               " dimensions of groups and ",
                               kernel.group.size(), " of threads"));
  }
  shape->dimensions = static_cast<uint32_t>(dimensions);
  if (auto bad = ReadExtents(kernel.grid, kernel.entry, shape->groups)) {
    return bad;
  }
  if (auto bad = ReadExtents(kernel.group, kernel.entry, shape->threads)) {
    return bad;
  }
  const auto refused = [&](const std::string& what) {
    return Failed(v1::OUTCOME_REFUSED,
                  absl::StrCat("kernel ", kernel.entry, " has ", what,
                               ", more "
                               "than any device takes"));
  };
  for (size_t d = 0; d < dimensions; ++d) {
    if (kernel.group[d] > kMost / shape->group_threads) {
      return refused(absl::StrCat("groups of more than ", kMost, " threads"));
    }
    shape->group_threads *= kernel.group[d];
    // OpenCL counts threads, in the host's size_t.
    if (static_cast<uint64_t>(kernel.grid[d] * kernel.group[d]) >
        std::numeric_limits<size_t>::max()) {
      return refused(absl::StrCat(kernel.grid[d] * kernel.group[d],
                                  " threads in dimension ", d));
    }
  }
  if (kernel.shared_bytes < 0) {
    return Failed(v1::OUTCOME_COMPILE_ERROR,
                  absl::StrCat("kernel ", kernel.entry, " has ",
                               kernel.shared_bytes, " bytes of shared memory"));
  }
  if (kernel.shared_bytes > kMost) {
    return refused(
        absl::StrCat(kernel.shared_bytes, " bytes of shared memory"));
  }
  shape->shared_bytes = static_cast<uint32_t>(kernel.shared_bytes);
  return std::nullopt;
}

}  // namespace regatta
