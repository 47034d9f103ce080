#include "device_agent/run/device_time.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

// Within a tick of both ends a short call may look like none.
constexpr int64_t kSurelyTicks = 200;
// Clocks of devices drift and are calibrated; none is as wrong as this.
constexpr double kClockFactor = 2;
constexpr double kClockSlackNs = 1e6;
constexpr double kLongestNs = 9e18;  // of a 64-bit count

MaybeFailure BadClock(std::string what) {
  return Failed(v1::OUTCOME_DEVICE_FAULT,
                absl::StrCat("the driver's times cannot be right: ", what));
}

}  // namespace

MaybeFailure CheckSpans(const std::vector<CallSpan>& spans) {
  for (size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].end_ns < spans[i].start_ns) {
      return BadClock(absl::StrCat("a call started at ", spans[i].start_ns,
                                   " ns and ended at ", spans[i].end_ns,
                                   " ns"));
    }
    if (i > 0 && spans[i].start_ns < spans[i - 1].start_ns) {
      return BadClock(absl::StrCat("a call started at ", spans[i].start_ns,
                                   " ns, the one before it at ",
                                   spans[i - 1].start_ns, " ns"));
    }
  }
  return std::nullopt;
}

MaybeFailure CheckElapsed(double elapsed_ns, int64_t resolution_ns,
                          std::optional<int64_t> host_ns) {
  if (!(elapsed_ns >= 0 && elapsed_ns < kLongestNs)) {
    return BadClock(absl::StrCat("calls took ", elapsed_ns, " ns"));
  }
  if (elapsed_ns == 0 &&
      (!host_ns || *host_ns >= kSurelyTicks * resolution_ns)) {
    return BadClock(absl::StrCat("calls took no time; ticks of its clock are ",
                                 resolution_ns, " ns"));
  }
  if (host_ns && elapsed_ns > kClockFactor * static_cast<double>(*host_ns) +
                                  kClockSlackNs) {
    return BadClock(absl::StrCat("calls took ", elapsed_ns,
                                 " ns, but the host waited ", *host_ns,
                                 " ns for them"));
  }
  return std::nullopt;
}

}  // namespace regatta
