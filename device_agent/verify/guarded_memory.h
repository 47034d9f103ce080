// Memory for a kernel's buffers that shows when something else was touched:
// pages that nobody may access before and after, and known bytes in what is
// left of the buffer's own pages. The buffer ends as near to the following
// guard as its alignment allows, because kernels overrun ends far more often
// than beginnings.
//
// Not thread-safe. Movable; unmapped when destroyed.
#ifndef REGATTA_DEVICE_AGENT_VERIFY_GUARDED_MEMORY_H_
#define REGATTA_DEVICE_AGENT_VERIFY_GUARDED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace regatta {

class GuardedMemory {
 public:
  static constexpr size_t kGuardBytes = 1 << 20;

  // Fresh memory. `name` is for messages ("output C"). REQUIRES: bytes >= 0,
  // alignment a power of two up to the page size. ResourceExhausted when the
  // system gives none.
  static absl::StatusOr<GuardedMemory> Allocate(const std::string& name,
                                                int64_t bytes,
                                                int64_t alignment);
  // `bytes` bytes of a file whose section starts at page-aligned `offset` and
  // is SectionBytes(bytes) long. `writable` shares the writes with the file.
  static absl::StatusOr<GuardedMemory> MapSection(const std::string& name,
                                                  int fd, int64_t offset,
                                                  int64_t bytes, bool writable);
  // Whole pages that hold `bytes` bytes ending at a multiple of 64.
  static int64_t SectionBytes(int64_t bytes);

  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&& other) noexcept;
  ~GuardedMemory();

  const std::string& name() const { return name_; }
  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // The whole reservation, guards included.
  const char* begin() const { return base_; }
  const char* end() const { return base_ + reserved_; }

  // Fills the buffer with `pattern` and the rest of its pages with known bytes.
  // REQUIRES: writable.
  void Poison(uint8_t pattern);
  // "" or what was written outside the buffer ("3 bytes before output C").
  // REQUIRES: Poison was called.
  std::string Damage() const;
  // From now on read-only.
  void Protect();

 private:
  GuardedMemory() = default;
  static absl::StatusOr<GuardedMemory> Reserve(const std::string& name,
                                               int64_t bytes,
                                               int64_t alignment);

  std::string name_;
  char* base_ = nullptr;  // of the reservation
  size_t reserved_ = 0;
  char* pages_ = nullptr;  // what is accessible
  size_t page_bytes_ = 0;
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_VERIFY_GUARDED_MEMORY_H_
