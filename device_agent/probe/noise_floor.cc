#include "device_agent/probe/noise_floor.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace regatta {
namespace {

int64_t Median(std::vector<int64_t> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

}  // namespace

double NoiseFloor(const std::function<int64_t()>& time_block, int sessions,
                  int blocks_per_side) {
  std::vector<double> differences;
  for (int session = 0; session < sessions; ++session) {
    std::vector<int64_t> a, b;
    for (int i = 0; i < blocks_per_side; ++i) {
      a.push_back(time_block());
      b.push_back(time_block());
    }
    const auto median_a = static_cast<double>(Median(a));
    const auto median_b = static_cast<double>(Median(b));
    differences.push_back(std::abs(median_a / median_b - 1));
  }
  std::sort(differences.begin(), differences.end());
  const auto at = static_cast<size_t>(
      std::ceil(0.95 * static_cast<double>(differences.size())));
  return differences[at - 1];
}

}  // namespace regatta
