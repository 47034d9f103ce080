// Messages with descriptors beside them over a Unix stream socket: the
// transport of worker.proto. A frame is a 4-byte little-endian length and that
// many bytes of one serialised message; descriptors travel with its first byte.
//
// Not thread-safe, except that one thread may send while another receives.
#ifndef REGATTA_DEVICE_AGENT_SPAWNER_FRAME_CHANNEL_H_
#define REGATTA_DEVICE_AGENT_SPAWNER_FRAME_CHANNEL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "google/protobuf/message_lite.h"

namespace regatta {

class FrameChannel {
 public:
  static constexpr uint32_t kMaxFrameBytes = 16 << 20;
  static constexpr int kMaxDescriptors = 250;  // a frame; the kernel takes 253

  struct Frame {
    std::string bytes;
    std::vector<UniqueFd> descriptors;  // closed on exec
  };

  // A connected pair, both ends closed on exec.
  static absl::StatusOr<std::pair<UniqueFd, UniqueFd>> SocketPair();

  explicit FrameChannel(UniqueFd socket) : socket_(std::move(socket)) {}
  int fd() const { return socket_.get(); }

  // Unavailable when the peer is gone, InvalidArgument for a message or a
  // number of descriptors that no frame holds. Blocks while the socket is full.
  absl::Status Send(const google::protobuf::MessageLite& message,
                    absl::Span<const int> descriptors = {});

  // The next frame. OutOfRange: the peer closed between frames. DataLoss: it
  // closed inside one, or this process may not open the descriptors that came.
  // InvalidArgument: a length beyond kMaxFrameBytes. After these two the
  // channel is useless. DeadlineExceeded: nothing began or a frame did not
  // end within `timeout_ms` (negative: for ever) of silence.
  absl::StatusOr<Frame> Receive(int timeout_ms = -1);

  // Receive and parse; DataLoss for bytes that are no T. `descriptors` may be
  // null: then any that came are closed.
  template <typename T>
  absl::StatusOr<T> ReceiveMessage(std::vector<UniqueFd>* descriptors = nullptr,
                                   int timeout_ms = -1) {
    ASSIGN_OR_RETURN(Frame frame, Receive(timeout_ms));
    T message;
    if (!message.ParseFromString(frame.bytes)) {
      return absl::DataLossError("the frame is no " + message.GetTypeName());
    }
    if (descriptors != nullptr) *descriptors = std::move(frame.descriptors);
    return message;
  }

 private:
  // Fills `data`; descriptors that arrive go to `frame`.
  absl::Status ReceiveBytes(char* data, size_t size, int timeout_ms,
                            bool at_start, Frame* frame);

  UniqueFd socket_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_SPAWNER_FRAME_CHANNEL_H_
