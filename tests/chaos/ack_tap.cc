#include "tests/chaos/ack_tap.h"

#include "absl/strings/match.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta::testing {
namespace {

constexpr size_t kFrameHeader = 9, kMessageHeader = 5;
constexpr uint8_t kData = 0, kPadded = 0x8;
constexpr char kCanary[] = "~canary/";

uint32_t Number(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  }
  return value;
}

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
    Session& session = sessions_[connection];
    session.frames.append(bytes);
    Read(&session);
  };
}

void AckTap::Read(Session* session) {
  std::string& frames = session->frames;
  while (frames.size() >= kFrameHeader) {
    const size_t length = Number(frames, 0, 3);
    if (frames.size() < kFrameHeader + length) return;
    const auto type = static_cast<uint8_t>(frames[3]);
    const auto flags = static_cast<uint8_t>(frames[4]);
    const uint32_t call = Number(frames, 5, 4) & 0x7FFFFFFF;
    std::string_view data =
        std::string_view(frames).substr(kFrameHeader, length);
    if (type == kData) {
      if ((flags & kPadded) != 0 && !data.empty()) {
        const size_t padding = static_cast<uint8_t>(data[0]);
        data = data.substr(1, data.size() - 1 - padding);
      }
      std::string& bytes = session->calls[call];
      bytes.append(data);
      ReadMessages(&bytes);
    }
    frames.erase(0, kFrameHeader + length);
  }
}

void AckTap::ReadMessages(std::string* bytes) {
  while (bytes->size() >= kMessageHeader) {
    const size_t length = Number(*bytes, 1, 4);
    if (bytes->size() < kMessageHeader + length) return;
    ReadMessage(std::string_view(*bytes).substr(kMessageHeader, length));
    bytes->erase(0, kMessageHeader + length);
  }
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
