#include "compiler/ptxsim/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta::ptxsim {
namespace {

constexpr uint64_t kStretchBytes = uint64_t{1} << 32;
// Within its first stretch, so that a small step back misses the buffer too.
constexpr uint64_t kFirstByte = 512;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kGuardBytes = 64 << 10;

}  // namespace

void DeviceMemory::Release::operator()(std::byte* data) const {
  if (mapped == 0) {
    delete[] data;
  } else {
    munmap(data - kGuardBytes, mapped);
  }
}

DeviceMemory::DeviceMemory(uint64_t capacity_bytes)
    : capacity_bytes_(capacity_bytes) {}

absl::Status DeviceMemory::CheckRoom(uint64_t bytes) const {
  if (bytes == 0) {
    return absl::InvalidArgumentError("a device buffer of 0 bytes");
  }
  if (bytes > capacity_bytes_ - used_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "out of simulated device memory: ", bytes, " bytes asked, ",
        capacity_bytes_ - used_bytes_, " of ", capacity_bytes_, " free"));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> DeviceMemory::Allocate(uint64_t bytes) {
  RETURN_IF_ERROR(CheckRoom(bytes));
  std::unique_ptr<std::byte[], Release> data(new (std::nothrow)
                                                 std::byte[bytes]);
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no host memory for a device buffer of ", bytes));
  }
  std::memset(data.get(), 0xFF, bytes);
  const uint64_t address =
      kFirstAddress + stretches_.size() * kStretchBytes + kFirstByte;
  // One stretch more than the buffer needs: the gap.
  stretches_.insert(stretches_.end(), (bytes + kFirstByte) / kStretchBytes + 2,
                    static_cast<uint32_t>(buffers_.size()));
  buffers_.push_back({address, bytes, std::move(data)});
  used_bytes_ += bytes;
  return address;
}

absl::StatusOr<uint64_t> DeviceMemory::AllocateShared(uint64_t bytes) {
  RETURN_IF_ERROR(CheckRoom(bytes));
  const uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const uint64_t mapped = pages + 2 * kGuardBytes;
  void* at = mmap(nullptr, mapped, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no host memory for a shared buffer of ", bytes));
  }
  std::unique_ptr<std::byte[], Release> data(
      static_cast<std::byte*>(at) + kGuardBytes, Release(mapped));
  if (mprotect(data.get(), pages, PROT_READ | PROT_WRITE) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no host memory for a shared buffer of ", bytes));
  }
  std::memset(data.get(), 0xFF, bytes);
  const auto address = reinterpret_cast<uint64_t>(data.get());
  shared_.push_back(static_cast<uint32_t>(buffers_.size()));
  buffers_.push_back({address, bytes, std::move(data), /*shared=*/true});
  used_bytes_ += bytes;
  return address;
}

// The newest first: the host may use an address again.
const DeviceMemory::Buffer* DeviceMemory::NearShared(uint64_t address) const {
  const auto found =
      std::find_if(shared_.rbegin(), shared_.rend(), [&](uint32_t index) {
        const Buffer& buffer = buffers_[index];
        return address + kGuardBytes >= buffer.address &&
               address < buffer.address + buffer.bytes + kGuardBytes;
      });
  return found == shared_.rend() ? nullptr : &buffers_[*found];
}

absl::Status DeviceMemory::Free(uint64_t address) {
  const Buffer* buffer = Near(address);
  if (buffer == nullptr || buffer->address != address ||
      buffer->data == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "free of 0x", absl::Hex(address), ", which is no live device buffer"));
  }
  used_bytes_ -= buffer->bytes;
  buffers_[buffer - buffers_.data()].data.reset();
  return absl::OkStatus();
}

absl::StatusOr<std::byte*> DeviceMemory::Range(uint64_t address,
                                               uint64_t bytes) const {
  const Buffer* buffer = Near(address);
  if (buffer == nullptr || buffer->data == nullptr ||
      address < buffer->address || bytes > buffer->bytes ||
      address - buffer->address > buffer->bytes - bytes) {
    return absl::OutOfRangeError(Describe(address, bytes));
  }
  return buffer->data.get() + (address - buffer->address);
}

absl::Status DeviceMemory::Write(uint64_t address,
                                 absl::Span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(std::byte * at, Range(address, bytes.size()));
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status DeviceMemory::Read(uint64_t address,
                                absl::Span<std::byte> bytes) const {
  ASSIGN_OR_RETURN(const std::byte* at, Range(address, bytes.size()));
  if (!bytes.empty()) std::memcpy(bytes.data(), at, bytes.size());
  return absl::OkStatus();
}

absl::Status DeviceMemory::Fill(uint64_t address, uint64_t bytes,
                                std::byte value) {
  ASSIGN_OR_RETURN(std::byte * at, Range(address, bytes));
  std::memset(at, static_cast<int>(value), bytes);
  return absl::OkStatus();
}

std::string DeviceMemory::Describe(uint64_t address, uint64_t bytes) const {
  std::string text =
      absl::StrCat(bytes, " bytes at 0x", absl::Hex(address), " (");
  const Buffer* buffer = Near(address);
  if (buffer == nullptr) return absl::StrCat(text, "near no device buffer)");
  const std::string name = absl::StrCat("the buffer of ", buffer->bytes,
                                        " at 0x", absl::Hex(buffer->address));
  if (buffer->data == nullptr) {
    return absl::StrCat(text, "in ", name, ", which was freed)");
  }
  if (address < buffer->address) {
    return absl::StrCat(text, buffer->address - address, " before ", name, ")");
  }
  return absl::StrCat(text, "offset ", address - buffer->address, " of ", name,
                      ")");
}

}  // namespace regatta::ptxsim
