// Memory files (memfd): how modules, inputs and references pass between
// processes of one board, and how the linker gets its input. A sealed file can
// be mapped by a candidate without fear: nobody, whatever its user, can change
// or resize it any more.
//
// Free functions; thread-safe.
#ifndef REGATTA_BASE_MEMORY_FILE_H_
#define REGATTA_BASE_MEMORY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace regatta {

// An empty file, closed on exec. `name` is for people (/proc/PID/maps).
// ResourceExhausted when the system gives none.
absl::StatusOr<UniqueFd> CreateMemoryFile(const std::string& name);

// A file that holds `bytes`, sealed.
absl::StatusOr<UniqueFd> SealedMemoryFile(const std::string& name,
                                          std::string_view bytes);

// No more writes, growth or shrinking. FailedPrecondition while somebody has it
// mapped writable.
absl::Status SealMemoryFile(int fd);

// InvalidArgument when `fd` is no regular file.
absl::StatusOr<int64_t> FileBytes(int fd);

// A whole file mapped read-only for as long as this lives. Movable. Empty files
// map as empty bytes.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Map(int fd);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::string_view bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_BASE_MEMORY_FILE_H_
