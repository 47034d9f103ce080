#include "device_agent/run/cuda_memory.h"

#include <cstring>
#include <limits>
#include <utility>

#include "device_agent/verify/guard_bytes.h"

namespace regatta::cuda {

std::unique_ptr<GuardedBuffer> GuardedBuffer::Create(const Gpu& gpu,
                                                     std::string name,
                                                     int64_t bytes,
                                                     Result* error) {
  std::unique_ptr<GuardedBuffer> buffer(
      new GuardedBuffer(gpu, std::move(name), bytes));
  if (bytes > std::numeric_limits<int64_t>::max() - 2 * kGuardBytes) {
    *error = kOutOfMemory;
    return nullptr;
  }
  const auto size = static_cast<size_t>(bytes + 2 * kGuardBytes);
  // Managed memory, not pinned host memory: an integrated GPU caches only the
  // former (CUDA for Tegra, "Memory Types").
  *error = gpu.shares_memory
               ? gpu.api->MemAllocManaged(&buffer->whole_, size, kAttachGlobal)
               : gpu.api->MemAlloc(&buffer->whole_, size);
  if (*error != kSuccess) return nullptr;
  return buffer;
}

GuardedBuffer::~GuardedBuffer() {
  if (whole_ != 0) gpu_.api->MemFree(whole_);
}

Result GuardedBuffer::Write(const void* from) {
  if (!gpu_.shares_memory) {
    return gpu_.api->MemcpyHtoD(address(), from, static_cast<size_t>(bytes_));
  }
  const Result error = gpu_.api->CtxSynchronize();
  if (error != kSuccess) return error;
  std::memcpy(reinterpret_cast<void*>(address()), from,
              static_cast<size_t>(bytes_));
  return kSuccess;
}

Result GuardedBuffer::Read(const void** bytes) {
  if (gpu_.shares_memory) {
    *bytes = reinterpret_cast<const void*>(address());
    return gpu_.api->CtxSynchronize();
  }
  copy_.resize(static_cast<size_t>(bytes_));
  *bytes = copy_.data();
  return gpu_.api->MemcpyDtoH(copy_.data(), address(), copy_.size());
}

Result GuardedBuffer::Poison(uint8_t pattern) {
  const Result error =
      bytes_ == 0
          ? kSuccess
          : gpu_.api->MemsetD8(address(), pattern, static_cast<size_t>(bytes_));
  return error != kSuccess ? error : Guard();
}

Result GuardedBuffer::Guard() {
  const Result error = gpu_.api->MemsetD8(whole_, kGuardByte, kGuardBytes);
  return error != kSuccess
             ? error
             : gpu_.api->MemsetD8(whole_ + static_cast<Address>(end_guard()),
                                  kGuardByte, kGuardBytes);
}

Result GuardedBuffer::Changed(int64_t from, int64_t* changed) const {
  std::vector<uint8_t> found(kGuardBytes);
  const Result error = gpu_.api->MemcpyDtoH(
      found.data(), whole_ + static_cast<Address>(from), found.size());
  *changed = DamagedBytes(found.data(), found.size());
  return error;
}

Result GuardedBuffer::FindDamage(std::string* damage) const {
  int64_t before = 0, after = 0;
  Result error = Changed(0, &before);
  if (error == kSuccess) error = Changed(end_guard(), &after);
  *damage = error == kSuccess ? DamageText(before, after, name_) : "";
  return error;
}

}  // namespace regatta::cuda
