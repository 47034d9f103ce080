// What operators on whole tensors share: lists of dimensions.
#ifndef REGATTA_COMPILER_OPS_SHAPES_H_
#define REGATTA_COMPILER_OPS_SHAPES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace regatta {

// InvalidArgument unless each entry of `axes` is a dimension of a tensor with
// `rank` dimensions, and none stands twice. `name` is the parameter.
absl::Status CheckAxes(std::string_view name, const std::vector<int64_t>& axes,
                       size_t rank);
// InvalidArgument unless the list has one entry for each dimension.
absl::Status CheckRank(std::string_view name, const std::vector<int64_t>& list,
                       size_t rank);

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_SHAPES_H_
