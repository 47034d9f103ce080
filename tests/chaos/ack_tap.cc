#include "tests/chaos/ack_tap.h"

#include "absl/strings/match.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta::testing {
namespace {

constexpr char kCanary[] = "~canary/";

}  // namespace

FaultProxy::Tap AckTap::Tap() {
  return [this](int64_t connection, FaultProxy::Direction direction,
                std::string_view bytes) {
    if (direction != FaultProxy::Direction::kFromTarget) return;
    std::lock_guard lock(mutex_);
    if (bytes.empty()) {
      sessions_.erase(connection);
      return;
    }
    sessions_[connection].Feed(
        bytes, [this](std::string_view message) { ReadMessage(message); });
  };
}

void AckTap::ReadMessage(std::string_view bytes) {
  v1::TrackerMessage message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    ++unread_;
    return;
  }
  for (const v1::TrialAck& ack : message.result_ack().acks()) {
    if (absl::StartsWith(ack.trial_id(), kCanary)) continue;
    if (ack.status() == v1::ACK_STATUS_REJECTED) {
      ++rejected_;
    } else {
      ++acks_;
      stored_.insert(ack.trial_id());
    }
  }
}

std::set<std::string> AckTap::stored() const {
  std::lock_guard lock(mutex_);
  return stored_;
}
int64_t AckTap::acks() const {
  std::lock_guard lock(mutex_);
  return acks_;
}
int64_t AckTap::rejected() const {
  std::lock_guard lock(mutex_);
  return rejected_;
}
int64_t AckTap::unread() const {
  std::lock_guard lock(mutex_);
  return unread_;
}

}  // namespace regatta::testing
