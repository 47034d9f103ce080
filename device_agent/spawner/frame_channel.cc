#include "device_agent/spawner/frame_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

constexpr size_t kLengthBytes = 4;

void AppendDescriptors(msghdr* header, std::vector<UniqueFd>* out) {
  for (cmsghdr* control = CMSG_FIRSTHDR(header); control != nullptr;
       control = CMSG_NXTHDR(header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      out->emplace_back(fd);
    }
  }
}

}  // namespace

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> FrameChannel::SocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("socket pair: ", strerror(errno)));
  }
  return std::make_pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

absl::Status FrameChannel::Send(const google::protobuf::MessageLite& message,
                                absl::Span<const int> descriptors) {
  const size_t size = message.ByteSizeLong();
  if (size > kMaxFrameBytes || descriptors.size() > kMaxDescriptors) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a frame of ", size, " bytes with ", descriptors.size(),
        " descriptors; at most ", kMaxFrameBytes, " and ", kMaxDescriptors));
  }
  std::string bytes(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) {
    bytes[i] = static_cast<char>(size >> (8 * i));
  }
  message.AppendToString(&bytes);

  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  size_t sent = 0;
  while (sent < bytes.size()) {
    iovec part = {bytes.data() + sent, bytes.size() - sent};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (sent == 0 && !descriptors.empty()) {
      header.msg_control = control;
      header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* message_header = CMSG_FIRSTHDR(&header);
      message_header->cmsg_level = SOL_SOCKET;
      message_header->cmsg_type = SCM_RIGHTS;
      message_header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      memcpy(CMSG_DATA(message_header), descriptors.data(),
             descriptors.size() * sizeof(int));
    }
    const ssize_t written = sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
    if (written < 0) {
      if (errno == EINTR) continue;
      return absl::UnavailableError(
          absl::StrCat("sending a frame: ", strerror(errno)));
    }
    sent += written;
  }
  return absl::OkStatus();
}

absl::Status FrameChannel::ReceiveBytes(char* data, size_t size, int timeout_ms,
                                        bool at_start, Frame* frame) {
  size_t got = 0;
  while (got < size) {
    pollfd ready = {socket_.get(), POLLIN, 0};
    const int polled = poll(&ready, 1, timeout_ms);
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("no frame within ", timeout_ms, " ms"));
    }
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
    iovec part = {data + got, size - got};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    const ssize_t read = recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    if (read < 0 && errno == EINTR) continue;
    if (read > 0) AppendDescriptors(&header, &frame->descriptors);
    if (read > 0 && (header.msg_flags & MSG_CTRUNC) != 0) {
      return absl::DataLossError(
          "descriptors beside a frame were lost: this process may not open "
          "that many files; raise its limit (ulimit -n)");
    }
    if (read <= 0) {
      if (at_start && got == 0) {
        return absl::OutOfRangeError("the peer closed the channel");
      }
      return absl::DataLossError("the peer closed the channel inside a frame");
    }
    got += read;
  }
  return absl::OkStatus();
}

absl::StatusOr<FrameChannel::Frame> FrameChannel::Receive(int timeout_ms) {
  Frame frame;
  unsigned char length[kLengthBytes];
  RETURN_IF_ERROR(ReceiveBytes(reinterpret_cast<char*>(length), kLengthBytes,
                               timeout_ms, /*at_start=*/true, &frame));
  uint32_t size = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    size |= static_cast<uint32_t>(length[i]) << (8 * i);
  }
  if (size > kMaxFrameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of ", size, " bytes; at most ", kMaxFrameBytes));
  }
  frame.bytes.resize(size);
  RETURN_IF_ERROR(ReceiveBytes(frame.bytes.data(), size, timeout_ms,
                               /*at_start=*/false, &frame));
  return frame;
}

}  // namespace regatta
