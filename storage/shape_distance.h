// How far apart two shapes of one computation are.
#ifndef REGATTA_STORAGE_SHAPE_DISTANCE_H_
#define REGATTA_STORAGE_SHAPE_DISTANCE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace regatta {

// Root of the summed squares of the log2 ratios of the extents.
// REQUIRES: equal sizes, all positive.
double ShapeDistance(absl::Span<const int64_t> a, absl::Span<const int64_t> b);

}  // namespace regatta

#endif  // REGATTA_STORAGE_SHAPE_DISTANCE_H_
