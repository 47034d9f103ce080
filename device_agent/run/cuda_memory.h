// A buffer that a CUDA device works on, with known bytes before and after it.
// Where the device shares the host's memory it is memory of both; elsewhere it
// is the device's own, and bytes are copied.
//
// Not thread-safe. Functions return CUDA's error codes; all work on the
// default stream, after the kernels that were launched before.
#ifndef REGATTA_DEVICE_AGENT_RUN_CUDA_MEMORY_H_
#define REGATTA_DEVICE_AGENT_RUN_CUDA_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device_agent/run/cuda_device.h"

namespace regatta::cuda {

class GuardedBuffer {
 public:
  static constexpr int64_t kGuardBytes = 4096;

  // Null with the error in `error`. `name` is for messages ("output C").
  // REQUIRES: bytes >= 0; `gpu` outlives the buffer.
  static std::unique_ptr<GuardedBuffer> Create(const Gpu& gpu, std::string name,
                                               int64_t bytes, Result* error);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  const std::string& name() const { return name_; }
  // What kernels get; aligned to 256 bytes at least.
  Address address() const { return whole_ + kGuardBytes; }
  int64_t bytes() const { return bytes_; }

  Result Write(const void* from);
  // Sets `*bytes` to where the host sees the buffer's bytes: itself, or a copy
  // that lives as long and is renewed by the next Read.
  Result Read(const void** bytes);
  // Fills the buffer with `pattern` and what surrounds it with known bytes.
  Result Poison(uint8_t pattern);
  // Known bytes around it, the buffer as it is.
  Result Guard();
  // Sets `damage` to "" or what was written around it.
  Result FindDamage(std::string* damage) const;

 private:
  GuardedBuffer(const Gpu& gpu, std::string name, int64_t bytes)
      : gpu_(gpu), name_(std::move(name)), bytes_(bytes) {}
  int64_t end_guard() const { return kGuardBytes + bytes_; }
  // How many of the guard's bytes from `from` on are not as filled.
  Result Changed(int64_t from, int64_t* changed) const;

  const Gpu& gpu_;
  const std::string name_;
  const int64_t bytes_;
  Address whole_ = 0;  // guard, buffer, guard
  std::vector<char> copy_;
};

}  // namespace regatta::cuda

#endif  // REGATTA_DEVICE_AGENT_RUN_CUDA_MEMORY_H_
