#include "device_agent/run/opencl_memory.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "device_agent/verify/guard_bytes.h"

namespace regatta::opencl {
namespace {

constexpr uint32_t kBlocking = 1;
// More pixels in a row or column than any device has.
constexpr int64_t kMaxPixels = 1 << 20;

}  // namespace

std::unique_ptr<GuardedBuffer> GuardedBuffer::Create(
    const Api& api, Context context, const std::string& name, int64_t bytes,
    size_t alignment, int32_t* error) {
  const size_t guard = std::max(kGuardBytes, alignment);
  if (static_cast<uint64_t>(bytes) >
      std::numeric_limits<size_t>::max() - 2 * guard) {
    *error = kInvalidBufferSize;
    return nullptr;
  }
  // No device has buffers of nothing.
  const size_t size = std::max<size_t>(static_cast<size_t>(bytes), 1);
  std::unique_ptr<GuardedBuffer> buffer(
      new GuardedBuffer(api, name, size, guard));
  buffer->whole_ = api.CreateBuffer(context, kMemReadWrite, size + 2 * guard,
                                    nullptr, error);
  if (*error != kSuccess) return nullptr;
  const BufferRegion region = {guard, size};
  buffer->view_ = api.CreateSubBuffer(buffer->whole_, kMemReadWrite,
                                      kBufferCreateTypeRegion, &region, error);
  if (*error != kSuccess) return nullptr;
  return buffer;
}

std::unique_ptr<GuardedBuffer> GuardedBuffer::CreateImage(
    const Api& api, Context context, const std::string& name, bool half,
    int64_t width, int64_t height, int32_t* error) {
  if (width < 1 || width > kMaxPixels || height < 1 || height > kMaxPixels) {
    *error = kInvalidImageSize;
    return nullptr;
  }
  std::unique_ptr<GuardedBuffer> image(new GuardedBuffer(
      api, name, static_cast<size_t>(width * height) * 4 * (half ? 2 : 4), 0));
  image->width_ = static_cast<size_t>(width);
  image->height_ = static_cast<size_t>(height);
  const ImageFormat format = {kRgba, half ? kHalfFloat : kFloat};
  ImageDescription description;
  description.width = image->width_;
  description.height = image->height_;
  image->view_ = api.CreateImage(context, kMemReadWrite, &format, &description,
                                 nullptr, error);
  if (*error != kSuccess) return nullptr;
  return image;
}

GuardedBuffer::~GuardedBuffer() {
  if (view_ != nullptr) api_.ReleaseMemObject(view_);
  if (whole_ != nullptr) api_.ReleaseMemObject(whole_);
}

int32_t GuardedBuffer::Write(Queue queue, const void* from) {
  return api_.EnqueueWriteBuffer(queue, view_, kBlocking, 0, bytes_, from, 0,
                                 nullptr, nullptr);
}

int32_t GuardedBuffer::Read(Queue queue, void* to) const {
  return api_.EnqueueReadBuffer(queue, view_, kBlocking, 0, bytes_, to, 0,
                                nullptr, nullptr);
}

int32_t GuardedBuffer::Fill(Queue queue, size_t from, size_t bytes,
                            uint8_t pattern) {
  return api_.EnqueueFillBuffer(queue, whole_, &pattern, sizeof(pattern), from,
                                bytes, 0, nullptr, nullptr);
}

int32_t GuardedBuffer::Poison(Queue queue, uint8_t pattern) {
  if (width_ > 0) {
    float color[4];
    std::memset(color, pattern, sizeof(color));
    const size_t origin[] = {0, 0, 0}, region[] = {width_, height_, 1};
    return api_.EnqueueFillImage(queue, view_, color, origin, region, 0,
                                 nullptr, nullptr);
  }
  const int32_t error = Fill(queue, guard_, bytes_, pattern);
  return error != kSuccess ? error : Guard(queue);
}

int32_t GuardedBuffer::Guard(Queue queue) {
  if (width_ > 0) return kSuccess;
  const int32_t error = Fill(queue, 0, guard_, kGuardByte);
  return error != kSuccess ? error
                           : Fill(queue, guard_ + bytes_, guard_, kGuardByte);
}

int32_t GuardedBuffer::Changed(Queue queue, size_t from, size_t bytes,
                               int64_t* changed) const {
  std::vector<uint8_t> found(bytes);
  const int32_t error = api_.EnqueueReadBuffer(
      queue, whole_, kBlocking, from, bytes, found.data(), 0, nullptr, nullptr);
  *changed = DamagedBytes(found.data(), found.size());
  return error;
}

int32_t GuardedBuffer::FindDamage(Queue queue, std::string* damage) const {
  damage->clear();
  if (width_ > 0) return kSuccess;
  int64_t before = 0, after = 0;
  int32_t error = Changed(queue, 0, guard_, &before);
  if (error == kSuccess) {
    error = Changed(queue, guard_ + bytes_, guard_, &after);
  }
  if (error == kSuccess) *damage = DamageText(before, after, name_);
  return error;
}

}  // namespace regatta::opencl
