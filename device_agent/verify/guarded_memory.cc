#include "device_agent/verify/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "device_agent/verify/guard_bytes.h"

namespace regatta {
namespace {

constexpr int64_t kSectionAlignment = 64;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

int64_t PageBytes() { return sysconf(_SC_PAGESIZE); }

int64_t PagesFor(int64_t bytes, int64_t alignment) {
  return std::max(PageBytes(), RoundUp(RoundUp(bytes, alignment), PageBytes()));
}

absl::Status NoMemory(const std::string& name, int64_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "no memory for ", name, " (", bytes, " bytes): ", strerror(errno)));
}

}  // namespace

int64_t GuardedMemory::SectionBytes(int64_t bytes) {
  return PagesFor(bytes, kSectionAlignment);
}

absl::StatusOr<GuardedMemory> GuardedMemory::Reserve(const std::string& name,
                                                     int64_t bytes,
                                                     int64_t alignment) {
  CHECK(bytes >= 0 && alignment > 0 && PageBytes() % alignment == 0)
      << name << ": " << bytes << " bytes aligned to " << alignment;
  GuardedMemory memory;
  memory.name_ = name;
  memory.bytes_ = bytes;
  memory.page_bytes_ = PagesFor(bytes, alignment);
  memory.reserved_ = memory.page_bytes_ + 2 * kGuardBytes;
  void* base = mmap(nullptr, memory.reserved_, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return NoMemory(name, bytes);
  memory.base_ = static_cast<char*>(base);
  memory.pages_ = memory.base_ + kGuardBytes;
  memory.data_ = memory.pages_ + memory.page_bytes_ - RoundUp(bytes, alignment);
  return memory;
}

absl::StatusOr<GuardedMemory> GuardedMemory::Allocate(const std::string& name,
                                                      int64_t bytes,
                                                      int64_t alignment) {
  ASSIGN_OR_RETURN(GuardedMemory memory, Reserve(name, bytes, alignment));
  if (mprotect(memory.pages_, memory.page_bytes_, PROT_READ | PROT_WRITE) !=
      0) {
    return NoMemory(name, bytes);
  }
  return memory;
}

absl::StatusOr<GuardedMemory> GuardedMemory::MapSection(const std::string& name,
                                                        int fd, int64_t offset,
                                                        int64_t bytes,
                                                        bool writable) {
  ASSIGN_OR_RETURN(GuardedMemory memory,
                   Reserve(name, bytes, kSectionAlignment));
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  const int flags =
      (writable ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED | MAP_POPULATE;
  if (mmap(memory.pages_, memory.page_bytes_, protection, flags, fd, offset) ==
      MAP_FAILED) {
    return NoMemory(name, bytes);
  }
  return memory;
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept {
  *this = std::move(other);
}

GuardedMemory& GuardedMemory::operator=(GuardedMemory&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(base_, other.base_);
  std::swap(reserved_, other.reserved_);
  std::swap(pages_, other.pages_);
  std::swap(page_bytes_, other.page_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

GuardedMemory::~GuardedMemory() {
  if (base_ != nullptr) munmap(base_, reserved_);
}

void GuardedMemory::Poison(uint8_t pattern) {
  memset(pages_, kGuardByte, page_bytes_);
  memset(data_, pattern, bytes_);
}

std::string GuardedMemory::Damage() const {
  const char* const behind = data_ + bytes_;
  return DamageText(
      DamagedBytes(pages_, static_cast<size_t>(data_ - pages_)),
      DamagedBytes(behind, static_cast<size_t>(pages_ + page_bytes_ - behind)),
      name_);
}

void GuardedMemory::Protect() { mprotect(pages_, page_bytes_, PROT_READ); }

}  // namespace regatta
