#include "proto/device_time.h"

#include <algorithm>

namespace regatta {

namespace {
constexpr int64_t kDay = int64_t{24} * 3600 * 1'000'000'000;
}  // namespace

int64_t DeviceNs(const v1::TrialResult& result) {
  const auto clamped = [](int64_t ns) {
    return std::clamp<int64_t>(ns, 0, kDay);
  };
  const v1::PhaseTimes& phases = result.phases();
  const int64_t held = clamped(phases.verify_ns()) + clamped(phases.time_ns());
  return std::min(kDay, held > 0 ? held : clamped(phases.build_ns()));
}

}  // namespace regatta
