#include "compiler/ops/shapes.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace regatta {

absl::Status CheckAxes(std::string_view name, const std::vector<int64_t>& axes,
                       size_t rank) {
  std::vector<bool> seen(rank, false);
  for (const int64_t axis : axes) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(name), " names dimension ", axis,
                       " of a tensor with dimensions 0 to ", rank - 1));
    }
    if (seen[axis]) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(name), " names dimension ", axis, " twice"));
    }
    seen[axis] = true;
  }
  return absl::OkStatus();
}

absl::Status CheckRank(std::string_view name, const std::vector<int64_t>& list,
                       size_t rank) {
  if (list.size() == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(name), " has ", list.size(),
                   " entries; the tensor has ", rank, " dimensions"));
}

}  // namespace regatta
