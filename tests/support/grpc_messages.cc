#include "tests/support/grpc_messages.h"

namespace regatta::testing {
namespace {

constexpr size_t kFrameHeader = 9, kMessageHeader = 5;
constexpr uint8_t kData = 0, kPadded = 0x8;
// What a client begins a connection with.
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

uint32_t Number(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  }
  return value;
}

// Takes whole messages off the front.
void TakeMessages(std::string* bytes, const GrpcMessages::Found& found) {
  while (bytes->size() >= kMessageHeader) {
    const size_t length = Number(*bytes, 1, 4);
    if (bytes->size() < kMessageHeader + length) return;
    found(std::string_view(*bytes).substr(kMessageHeader, length));
    bytes->erase(0, kMessageHeader + length);
  }
}

}  // namespace

void GrpcMessages::Feed(std::string_view bytes, const Found& found) {
  frames_.append(bytes);
  if (!started_) {
    const bool client = frames_[0] == kPreface[0];
    if (client && frames_.size() < kPreface.size()) return;
    if (client) frames_.erase(0, kPreface.size());
    started_ = true;
  }
  while (frames_.size() >= kFrameHeader) {
    const size_t length = Number(frames_, 0, 3);
    if (frames_.size() < kFrameHeader + length) return;
    const auto type = static_cast<uint8_t>(frames_[3]);
    const auto flags = static_cast<uint8_t>(frames_[4]);
    const uint32_t call = Number(frames_, 5, 4) & 0x7FFFFFFF;
    std::string_view data =
        std::string_view(frames_).substr(kFrameHeader, length);
    if (type == kData) {
      if ((flags & kPadded) != 0 && !data.empty()) {
        const size_t padding = static_cast<uint8_t>(data[0]);
        data = data.substr(1, data.size() - 1 - padding);
      }
      std::string& message = calls_[call];
      message.append(data);
      TakeMessages(&message, found);
    }
    frames_.erase(0, kFrameHeader + length);
  }
}

}  // namespace regatta::testing
