#include "device_agent/measure/measuring_session.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace regatta {

double MeasuringSession::Tolerance() const {
  return std::max(kLeastTolerance, 2 * noise_floor_.load());
}

void MeasuringSession::Begin() {
  const SteadyTime now = parts_.clock->Steady();
  // Nothing was timed meanwhile, so a drift that is found now spoilt nothing.
  if (open_ && unproven_ == 0 && now - looked_ >= kAge) Look();
  if (!open_) Open();
}

void MeasuringSession::Open() {
  std::optional<double> reference = parts_.time_reference(/*alone=*/true);
  absl::Duration waited;
  while (unsettled_ && reference.has_value() && waited < kLongestSettling) {
    parts_.pause(kSettleStep);
    waited += kSettleStep;
    const std::optional<double> next = parts_.time_reference(/*alone=*/true);
    const bool settled =
        next.has_value() && std::abs(*next / *reference - 1) <= Tolerance();
    reference = next;
    if (settled) break;
  }
  looked_ = looked_alone_ = parts_.clock->Steady();
  beside_ns_.reset();
  unsettled_ = !reference.has_value();
  if (!reference.has_value()) {
    id_.clear();
    reference_ns_ = 0;
    return;
  }
  open_ = true;
  reference_ns_ = *reference;
  id_ = absl::StrCat(parts_.board, "/", ++opened_);
}

void MeasuringSession::Timed() {
  if (!open_) return;
  if (unproven_++ == 0) due_ = parts_.clock->Steady() + kHold;
}

double MeasuringSession::Moved(double now) const {
  return now / reference_ns_ - 1;
}

bool MeasuringSession::SeemsWell() {
  const std::optional<double> now = parts_.time_reference(/*alone=*/false);
  if (!now.has_value() || std::abs(Moved(*now)) <= Tolerance()) return true;
  if (beside_ns_.has_value() &&
      std::abs(*now / *beside_ns_ - 1) <= Tolerance()) {
    return true;
  }
  beside_ns_ = *now;
  return false;
}

std::string MeasuringSession::Look() {
  const SteadyTime now = parts_.clock->Steady();
  looked_ = now;
  if (now - looked_alone_ < kAge && SeemsWell()) return "";
  double moved = 0;
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) parts_.pause(kBetweenLooks);
    const std::optional<double> alone = parts_.time_reference(/*alone=*/true);
    moved = alone.has_value() ? Moved(*alone) : 0;
    looked_ = looked_alone_ = parts_.clock->Steady();
    if (std::abs(moved) <= Tolerance()) return "";
  }
  open_ = false;
  unsettled_ = true;
  ++closed_;
  last_drift_ = moved;
  return absl::StrFormat(
      "the board drifted: its reference kernel took %.1f us when measuring "
      "session %s began and %+.1f %% after this run, allowed are %.1f %%",
      reference_ns_ / 1e3, id_, moved * 100, Tolerance() * 100);
}

std::string MeasuringSession::Prove() {
  if (unproven_ == 0) return "";
  unproven_ = 0;
  due_.reset();
  return Look();
}

}  // namespace regatta
