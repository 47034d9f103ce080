// Lines of a file or of standard input, one at a time, whatever their length.
#ifndef REGATTA_CLIENT_CLI_LINE_READER_H_
#define REGATTA_CLIENT_CLI_LINE_READER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace regatta::cli {

// Memory: one line, cut off at its limit. Not thread-safe.
class LineReader {
 public:
  // `path` "-": standard input. FailedPrecondition with the path and the
  // system's reason. Of a line longer than `max_bytes` only the first
  // `max_bytes` + 1 are kept.
  static absl::StatusOr<LineReader> Open(const std::string& path,
                                         size_t max_bytes);
  LineReader(LineReader&& other) noexcept;
  ~LineReader();

  // The next line without its line break; false at the end.
  absl::StatusOr<bool> Next(std::string* line);

  int64_t bytes_read() const { return bytes_read_; }
  int64_t size() const { return size_; }  // of the file; 0: not known

 private:
  LineReader(std::string path, int fd, int64_t size, size_t max_bytes);
  absl::StatusOr<bool> Fill();

  std::string path_;
  int fd_;
  int64_t size_;
  size_t max_bytes_;
  int64_t bytes_read_ = 0;
  std::string buffer_;
  size_t used_ = 0;  // of the buffer
};

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_LINE_READER_H_
