// A buffer in an OpenCL device's memory with known bytes before and after it.
//
// Not thread-safe. Functions return CL error codes.
#ifndef REGATTA_DEVICE_AGENT_RUN_OPENCL_MEMORY_H_
#define REGATTA_DEVICE_AGENT_RUN_OPENCL_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "device_agent/run/opencl_api.h"

namespace regatta::opencl {

class GuardedBuffer {
 public:
  static constexpr size_t kGuardBytes = 4096;

  // Null with the error in `error`. `name` is for messages ("output C");
  // `alignment` the device's, in bytes. REQUIRES: bytes >= 0; `api` and
  // `context` outlive the buffer.
  static std::unique_ptr<GuardedBuffer> Create(const Api& api, Context context,
                                               const std::string& name,
                                               int64_t bytes, size_t alignment,
                                               int32_t* error);
  // The same for a two-dimensional image of pixels of four elements, f32 or
  // f16; nothing surrounds it, since no store leaves an image.
  static std::unique_ptr<GuardedBuffer> CreateImage(
      const Api& api, Context context, const std::string& name, bool half,
      int64_t width, int64_t height, int32_t* error);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  const std::string& name() const { return name_; }
  // What kernels get.
  const Memory& memory() const { return view_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

  // Write and Read: REQUIRES: no image.
  int32_t Write(Queue queue, const void* from);
  int32_t Read(Queue queue, void* to) const;
  // Fills the buffer with `pattern` and what surrounds it with known bytes.
  int32_t Poison(Queue queue, uint8_t pattern);
  // Known bytes around it, the buffer as it is.
  int32_t Guard(Queue queue);
  // Sets `damage` to "" or what was written around it.
  int32_t FindDamage(Queue queue, std::string* damage) const;

 private:
  GuardedBuffer(const Api& api, std::string name, size_t bytes, size_t guard)
      : api_(api), name_(std::move(name)), bytes_(bytes), guard_(guard) {}
  int32_t Fill(Queue queue, size_t from, size_t bytes, uint8_t pattern);
  // How many of `bytes` bytes from `from` on are not as filled.
  int32_t Changed(Queue queue, size_t from, size_t bytes,
                  int64_t* changed) const;

  const Api& api_;
  const std::string name_;
  const size_t bytes_, guard_;
  size_t width_ = 0, height_ = 0;  // of an image
  Memory whole_ = nullptr;         // guard, buffer, guard
  Memory view_ = nullptr;
};

}  // namespace regatta::opencl

#endif  // REGATTA_DEVICE_AGENT_RUN_OPENCL_MEMORY_H_
