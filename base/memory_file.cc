#include "base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/write_all.h"

namespace regatta {

absl::StatusOr<UniqueFd> CreateMemoryFile(const std::string& name) {
  UniqueFd fd(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("memory file ", name, ": ", strerror(errno)));
  }
  return fd;
}

absl::StatusOr<UniqueFd> SealedMemoryFile(const std::string& name,
                                          std::string_view bytes) {
  ASSIGN_OR_RETURN(UniqueFd fd, CreateMemoryFile(name));
  if (const int error = WriteAll(fd.get(), bytes); error != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("memory file ", name, ": ", strerror(error)));
  }
  RETURN_IF_ERROR(SealMemoryFile(fd.get()));
  return fd;
}

absl::Status SealMemoryFile(int fd) {
  if (fcntl(fd, F_ADD_SEALS,
            F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("sealing a memory file: ", strerror(errno)));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> FileBytes(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError("the descriptor is no regular file");
  }
  return info.st_size;
}

absl::StatusOr<MappedFile> MappedFile::Map(int fd) {
  ASSIGN_OR_RETURN(const int64_t bytes, FileBytes(fd));
  MappedFile mapped;
  if (bytes == 0) return mapped;
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("mapping a file of ", bytes, " bytes: ", strerror(errno)));
  }
  mapped.data_ = static_cast<const char*>(data);
  mapped.size_ = bytes;
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
}

}  // namespace regatta
