#include "storage/shape_distance.h"

#include <cmath>

namespace regatta {

double ShapeDistance(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double ratio = std::log2(static_cast<double>(a[i])) -
                         std::log2(static_cast<double>(b[i]));
    sum += ratio * ratio;
  }
  return std::sqrt(sum);
}

}  // namespace regatta
