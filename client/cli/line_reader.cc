#include "client/cli/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta::cli {
namespace {

constexpr size_t kBufferBytes = 256 << 10;

absl::Status CannotRead(const std::string& path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot read ", path, ": ", std::strerror(error)));
}

}  // namespace

LineReader::LineReader(std::string path, int fd, int64_t size, size_t max_bytes)
    : path_(std::move(path)), fd_(fd), size_(size), max_bytes_(max_bytes) {}

LineReader::LineReader(LineReader&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      max_bytes_(other.max_bytes_),
      bytes_read_(other.bytes_read_),
      buffer_(std::move(other.buffer_)),
      used_(other.used_) {}

LineReader::~LineReader() {
  if (fd_ > STDIN_FILENO) close(fd_);
}

absl::StatusOr<LineReader> LineReader::Open(const std::string& path,
                                            size_t max_bytes) {
  if (path == "-") {
    return LineReader("standard input", STDIN_FILENO, 0, max_bytes);
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return CannotRead(path, errno);
  struct stat info = {};
  if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    close(fd);
    return CannotRead(path, EISDIR);
  }
  return LineReader(path, fd, S_ISREG(info.st_mode) ? info.st_size : 0,
                    max_bytes);
}

// False: the end.
absl::StatusOr<bool> LineReader::Fill() {
  buffer_.resize(kBufferBytes);
  used_ = 0;
  ssize_t got;
  do {
    got = read(fd_, buffer_.data(), buffer_.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) return CannotRead(path_, errno);
  buffer_.resize(got);
  bytes_read_ += got;
  return got > 0;
}

absl::StatusOr<bool> LineReader::Next(std::string* line) {
  line->clear();
  bool any = false;
  while (true) {
    if (used_ == buffer_.size()) {
      ASSIGN_OR_RETURN(const bool more, Fill());
      if (!more) return any;
    }
    any = true;
    const size_t end = buffer_.find('\n', used_);
    const size_t stop = std::min(end, buffer_.size());
    const size_t room = max_bytes_ + 1 - std::min(line->size(), max_bytes_ + 1);
    line->append(buffer_, used_, std::min(stop - used_, room));
    used_ = end == std::string::npos ? buffer_.size() : end + 1;
    if (end != std::string::npos) return true;
  }
}

}  // namespace regatta::cli
