// Bytes that a worker, perhaps a candidate's, writes to the agent's end of a
// frame channel.
#include <unistd.h>

#include <cstdint>

#include "base/check.h"
#include "device_agent/spawner/frame_channel.h"
#include "regatta/v1/worker.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  if (size > 4096) return 0;  // what a socket surely takes at once
  auto pair = FrameChannel::SocketPair();
  CHECK(pair.ok()) << pair.status();
  CHECK(write(pair->second.get(), data, size) == static_cast<ssize_t>(size));
  pair->second = UniqueFd();
  FrameChannel channel(std::move(pair->first));
  while (true) {
    const auto response =
        channel.ReceiveMessage<v1::RunResponse>(nullptr, 1000);
    if (response.ok()) continue;
    const auto code = response.status().code();
    CHECK(code != absl::StatusCode::kDeadlineExceeded) << response.status();
    if (code != absl::StatusCode::kDataLoss) break;
    // A frame that is no message leaves the channel usable; a torn one ends it.
    if (response.status().message().find("is no ") == std::string::npos) break;
  }
  return 0;
}
