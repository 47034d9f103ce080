// The global memory of a simulated GPU: buffers at 64-bit addresses.
//
// Buffers lie at least 4 GiB apart and addresses are never used twice, so an
// address outside of a buffer, or of a freed one, is always noticed. The same
// calls give the same addresses. Neither holds for shared buffers, which the
// host sees too. Not thread-safe.
#ifndef REGATTA_COMPILER_PTXSIM_DEVICE_MEMORY_H_
#define REGATTA_COMPILER_PTXSIM_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace regatta::ptxsim {

class DeviceMemory {
 public:
  // `capacity_bytes`: what all live buffers together may take.
  explicit DeviceMemory(uint64_t capacity_bytes = uint64_t{16} << 30);

  // A buffer of `bytes` at an address that is a multiple of 512, filled with
  // 0xFF (a NaN in every float type), so that reading what nobody wrote shows.
  // InvalidArgument for 0 bytes, ResourceExhausted beyond the capacity.
  absl::StatusOr<uint64_t> Allocate(uint64_t bytes);
  // The same at an address, a multiple of 4096, at which this process reads and
  // writes it too, with 64 KiB that nobody may touch on both sides.
  absl::StatusOr<uint64_t> AllocateShared(uint64_t bytes);
  // InvalidArgument unless `address` is what Allocate returned, and once only.
  absl::Status Free(uint64_t address);

  // Ranges may start anywhere within a buffer; OutOfRange when they do not lie
  // within one.
  absl::Status Write(uint64_t address, absl::Span<const std::byte> bytes);
  absl::Status Read(uint64_t address, absl::Span<std::byte> bytes) const;
  absl::Status Fill(uint64_t address, uint64_t bytes, std::byte value);

  template <typename T>
  absl::Status WriteArray(uint64_t address, absl::Span<const T> values) {
    return Write(address, absl::MakeConstSpan(
                              reinterpret_cast<const std::byte*>(values.data()),
                              values.size() * sizeof(T)));
  }
  template <typename T>
  absl::StatusOr<std::vector<T>> ReadArray(uint64_t address,
                                           size_t count) const {
    std::vector<T> values(count);
    absl::Status status = Read(
        address, absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()),
                                count * sizeof(T)));
    if (!status.ok()) return status;
    return values;
  }

  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t capacity_bytes() const { return capacity_bytes_; }

  // For the simulator.
  struct Release {
    Release() : mapped(0) {}
    explicit Release(uint64_t bytes) : mapped(bytes) {}
    uint64_t mapped;  // bytes, guards included; 0: from the heap
    void operator()(std::byte* data) const;
  };
  struct Buffer {
    uint64_t address = 0;
    uint64_t bytes = 0;
    std::unique_ptr<std::byte[], Release> data;  // null once freed
    bool shared = false;
  };
  // The buffer whose stretch of addresses `address` falls into, freed ones
  // included, or nullptr. The address need not lie within the buffer.
  const Buffer* Near(uint64_t address) const {
    const uint64_t stretch = (address >> 32) - (kFirstAddress >> 32);
    return stretch < stretches_.size() ? &buffers_[stretches_[stretch]]
                                       : NearShared(address);
  }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  // "8 bytes at 0x... (4 bytes past the end of the buffer of 64 at 0x...)"
  std::string Describe(uint64_t address, uint64_t bytes) const;

 private:
  static constexpr uint64_t kFirstAddress = uint64_t{0x10} << 32;

  // The memory that is left suffices for `bytes`.
  absl::Status CheckRoom(uint64_t bytes) const;
  const Buffer* NearShared(uint64_t address) const;
  absl::StatusOr<std::byte*> Range(uint64_t address, uint64_t bytes) const;

  uint64_t capacity_bytes_;
  uint64_t used_bytes_ = 0;
  std::vector<Buffer> buffers_;
  std::vector<uint32_t> stretches_;  // of 4 GiB: index in buffers_
  std::vector<uint32_t> shared_;     // the same, of shared buffers
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_DEVICE_MEMORY_H_
